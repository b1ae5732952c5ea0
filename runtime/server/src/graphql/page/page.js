// Starts GraphiQL over this server. The credential is kept in the tab's session storage and sent in a header, or in the
// first message of a socket; it is in no address and in no other storage.
"use strict";

(() => {
  const STORED = "terrane.credential";
  const FIRST_QUERY = `# Press the play button, or Ctrl+Enter, to run the operation under the cursor.
# The book at the left shows the schema; Ctrl+Space completes names.

query Cubes {
  cubes {
    name
    measures { name }
    dimensions { name }
  }
}
`;

  // The page may be shown under a path, so its own address is the endpoint.
  const endpoint = new URL(location.pathname, location.origin);
  const socket = new URL(endpoint);
  socket.protocol = location.protocol === "https:" ? "wss:" : "ws:";

  const credential = () => sessionStorage.getItem(STORED) ?? "";
  const authorization = () => (credential() ? { authorization: `Bearer ${credential()}` } : {});
  const createFetcher = () =>
    GraphiQL.createFetcher({
      url: endpoint.href,
      subscriptionUrl: socket.href,
      headers: authorization(),
      wsConnectionParams: authorization(),
    });

  const root = ReactDOM.createRoot(document.getElementById("graphiql"));
  const given = new URLSearchParams(location.search);
  const state = document.getElementById("state");
  const input = document.getElementById("secret");

  const show = () => {
    state.textContent = credential() ? "sent with each request" : "no credential";
    root.render(
      React.createElement(GraphiQL, {
        // A new caller sees another schema of cubes, so the page restarts and keeps its tabs.
        key: credential(),
        fetcher: createFetcher(),
        defaultQuery: FIRST_QUERY,
        query: given.get("query") ?? undefined,
        variables: given.get("variables") ?? undefined,
        operationName: given.get("operationName") ?? undefined,
        isHeadersEditorEnabled: false,
        shouldPersistHeaders: false,
        inputValueDeprecation: true,
        schemaDescription: true,
      }),
    );
  };

  document.getElementById("credential").addEventListener("submit", (event) => {
    event.preventDefault();
    const secret = input.value.trim();
    input.value = "";
    if (secret) sessionStorage.setItem(STORED, secret);
    show();
  });
  document.getElementById("forget").addEventListener("click", () => {
    input.value = "";
    sessionStorage.removeItem(STORED);
    show();
  });
  show();
})();
