// Uses the page at `/graphql` in Chromium as a person does, and prints what a test checks.
import { chromium } from "playwright-core";

const [base, key, executablePath, screenshots] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const found = { hosts: [], violations: [], errors: [] };

/** Opens the page with an operation in its address. */
const open = async (context, parameters) => {
  const page = await context.newPage();
  page.on("request", (request) => {
    const { host, protocol } = new URL(request.url());
    if (protocol !== "data:") found.hosts.push(host);
  });
  page.on("websocket", (socket) => found.hosts.push(new URL(socket.url()).host));
  page.on("pageerror", (error) => found.errors.push(String(error)));
  page.on("console", (message) => {
    // A refused request is logged by the browser itself.
    if (message.type() === "error" && !message.text().includes("Failed to load resource")) found.errors.push(message.text());
  });
  await page.exposeFunction("reportViolation", (text) => found.violations.push(text));
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) =>
      window.reportViolation(`${event.violatedDirective}: ${event.blockedURI}`),
    );
  });
  await page.goto(`${base}/graphql?${new URLSearchParams(parameters)}`);
  await page.waitForSelector(".graphiql-container");
  return page;
};

const sign = async (page) => {
  await page.fill("#secret", key);
  await page.click("#credential button[type=submit]");
  await page.waitForFunction(() => document.getElementById("state").textContent.includes("sent"));
  await page.waitForSelector(".graphiql-execute-button");
};

/** Runs the operation, and returns the result once it contains `text`. */
const run = async (page, text) => {
  await page.click(".graphiql-execute-button");
  await page.waitForFunction(
    (text) => document.querySelector(".result-window")?.innerText.includes(text),
    text,
    { timeout: 20_000 },
  );
  return page.innerText(".result-window");
};

const shoot = async (page, name) => {
  if (screenshots) await page.screenshot({ path: `${screenshots}/${name}.png` });
};

try {
  const context = await browser.newContext({ colorScheme: "light" });

  const query = { query: "query Cube($name: String!) { cube(name: $name) { name title } }", variables: '{"name": "flights"}' };
  let page = await open(context, query);
  const anonymous = await run(page, "UNAUTHORIZED");
  await sign(page);
  const answered = await run(page, '"Flights"');
  await shoot(page, "light");
  found.query = { anonymous: anonymous.includes("UNAUTHORIZED"), answered: answered.includes('"flights"') };

  await page.click('button[aria-label="Show Documentation Explorer"]');
  await page.waitForSelector(".graphiql-doc-explorer");
  await page.click('.graphiql-doc-explorer a:text-is("Query")');
  await page.waitForFunction(() => document.querySelector(".graphiql-doc-explorer").innerText.includes("cubes"));
  found.explorer = (await page.innerText(".graphiql-doc-explorer")).includes("cubes");
  await shoot(page, "explorer");

  found.storage = await page.evaluate((key) => ({
    tab: Object.values(sessionStorage).includes(key),
    elsewhere: Object.values(localStorage).some((value) => value.includes(key)) || document.cookie.includes(key) || location.href.includes(key),
  }), key);

  const failing = await open(context, { query: '{ query(measures: ["flights.nothing"]) { data } }' });
  found.storage.other_tab = await failing.evaluate(() => sessionStorage.length);
  await sign(failing);
  found.error = (await run(failing, "unknown measure")).includes("flights.nothing");
  await failing.close();

  const live = await open(context, { query: 'subscription { queryResult(measures: ["flights.count"]) { data } }' });
  await sign(live);
  found.subscription = await run(live, "flights.count");
  await live.close();

  const light = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await browser.newContext({ colorScheme: "dark" });
  page = await open(dark, query);
  found.themes = [light, await page.evaluate(() => getComputedStyle(document.body).backgroundColor)];
  await sign(page);
  await run(page, '"Flights"');
  await shoot(page, "dark");
  await page.click("#forget");
  await page.waitForSelector(".graphiql-execute-button");
  found.forgotten = (await run(page, "UNAUTHORIZED")).includes("UNAUTHORIZED");
} finally {
  await browser.close();
}
found.hosts = [...new Set(found.hosts)];
console.log(JSON.stringify(found));
