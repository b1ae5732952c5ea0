// Sessions of the extension with the real `vscode-languageclient` and the real program, in an editor without windows.
//
// `TERRANE_BINARY` is the program, and `TERRANE_PROJECT` a copy of `examples/flights`. Without these variables, the
// tests are skipped.
"use strict";

const assert = require("node:assert/strict");
const { after, before, describe, test } = require("node:test");
const { Editor, loadExtension } = require("./editor.js");

const { TERRANE_BINARY: program = "", TERRANE_PROJECT: project = "" } = process.env;
const skip = program === "" || project === "" ? "TERRANE_BINARY and TERRANE_PROJECT are not set" : false;
const token = { isCancellationRequested: false, onCancellationRequested: () => ({ dispose: () => {} }) };

/** Starts the extension. */
async function start(settings) {
  const editor = new Editor(project, settings);
  const extension = loadExtension(editor);
  const subscriptions = [];
  await extension.activate({ subscriptions });
  return { editor, extension, subscriptions };
}

describe("features", { skip }, () => {
  let session;
  let flights;

  before(async () => {
    session = await start({ "terrane.path": program });
    flights = session.editor.open("cubes/flights.yml");
  });
  after(() => session.extension.deactivate());

  /** Returns a provider of the language client. */
  const provider = (name) => session.editor.providers.get(name);
  /** Returns the codes of a document's problems. */
  const codes = (file) => {
    const uri = [...session.editor.diagnostics.keys()].find((key) => key.endsWith(file)) ?? "";
    return (session.editor.diagnostics.get(uri) ?? []).map(({ code }) => code?.value ?? code);
  };

  test("the project has no problems", () => {
    assert.deepEqual(session.editor.errors, []);
    assert.deepEqual(codes("flights.yml"), []);
  });

  test("a change has diagnostics in all files, until it is undone", async () => {
    const { editor } = session;
    editor.change(flights, "name: on_time,", "name: in_time,");
    await editor.until(() => codes("metrics/metrics.yml").includes("unknown-member"));
    assert.ok(codes("cubes/flights.yml").includes("unknown-member"));
    editor.change(flights, "name: in_time,", "name: on_time,");
    await editor.until(() => codes("metrics/metrics.yml").length === 0);
    assert.deepEqual(codes("cubes/flights.yml"), []);
  });

  test("completion lists members", async () => {
    const metrics = session.editor.open("metrics/metrics.yml");
    const position = metrics.after("flights.");
    const found = await provider("CompletionItem").provideCompletionItems(metrics, position, token, { triggerKind: 0 });
    const labels = (found.items ?? found).map((item) => item.label.label ?? item.label);
    assert.ok(labels.includes("flights.count") && labels.includes("flights.on_time"), labels.join());
  });

  test("hover shows a description", async () => {
    const metrics = session.editor.documents.find(({ fileName }) => fileName.endsWith("metrics.yml"));
    assert.ok(metrics);
    const { contents } = await provider("Hover").provideHover(metrics, metrics.after("flights.o"), token);
    assert.match([contents].flat().map((part) => part.value).join("\n"), /on_time/);
  });

  test("definition leads to another file", async () => {
    const metrics = session.editor.documents.find(({ fileName }) => fileName.endsWith("metrics.yml"));
    assert.ok(metrics);
    const found = await provider("Definition").provideDefinition(metrics, metrics.after("flights.o"), token);
    const [first] = [found].flat();
    assert.match((first.uri ?? first.targetUri).path, /cubes\/flights\.yml$/);
  });

  test("references and symbols are found", async () => {
    const references = provider("Reference");
    const found = await references.provideReferences(flights, flights.after("name: on_t"), { includeDeclaration: true }, token);
    assert.ok(found.length >= 3, String(found.length));
    const symbols = await provider("WorkspaceSymbol").provideWorkspaceSymbols("on_time", token);
    assert.ok(symbols.some((symbol) => symbol.name.includes("on_time")));
  });

  test("rename changes all files", async () => {
    const position = flights.after("name: on_t");
    const edit = await provider("Rename").provideRenameEdits(flights, position, "punctual", token);
    const files = [...edit.edits.keys()];
    assert.ok(files.some((file) => file.endsWith("cubes/flights.yml")), files.join());
    assert.ok(files.some((file) => file.endsWith("metrics/metrics.yml")), files.join());
    assert.ok([...edit.edits.values()].flat().every(({ newText }) => newText.includes("punctual")));
  });

  test("an invalid rename is refused with a reason", async () => {
    const rename = provider("Rename").provideRenameEdits(flights, flights.after("name: on_t"), "On Time", token);
    await assert.rejects(rename, /snake_case/);
  });

  test("the command restarts the server", async () => {
    await session.editor.commands.get("terrane.restart")?.();
    const edit = await provider("Rename").provideRenameEdits(flights, flights.after("name: on_t"), "punctual", token);
    assert.ok(edit.edits.size >= 2);
  });
});

test("a missing program is reported, and a changed path starts the server", { skip }, async () => {
  const { editor, extension } = await start({ "terrane.path": "/no/such/program" });
  await editor.until(() => editor.errors.some((error) => error.includes("`/no/such/program lsp` cannot be started")));
  assert.equal(editor.providers.size, 0);
  editor.settings["terrane.path"] = program;
  editor.event("onDidChangeConfiguration").fire({ affectsConfiguration: (name) => name === "terrane.path" });
  await editor.until(() => editor.providers.has("Hover"));
  await extension.deactivate();
});
