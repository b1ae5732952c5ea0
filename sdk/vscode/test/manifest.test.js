// The manifest: its entries exist, and its patterns fit the files of a project.
"use strict";

const assert = require("node:assert/strict");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { test } = require("node:test");
const minimatch = require("minimatch");
const manifest = require("../package.json");
const { Editor, loadExtension } = require("./editor.js");

const { TERRANE_BINARY: program = "", TERRANE_PROJECT: project = "" } = process.env;
const root = path.join(__dirname, "..");

test("files of the manifest exist", () => {
  for (const file of [manifest.main, "README.md", "LICENSE", ".vscodeignore"]) {
    assert.ok(fs.existsSync(path.join(root, file)), file);
  }
});

test("the package contains what the extension loads, and no more of the folder", () => {
  const ignored = fs.readFileSync(path.join(root, ".vscodeignore"), "utf8").split("\n").filter(Boolean);
  const isIgnored = (file) => ignored.some((pattern) => minimatch(file, pattern, { dot: true }));
  const files = fs.readdirSync(root).filter((file) => file !== "node_modules" && !file.startsWith(".git"));
  const packed = files.filter((file) => !isIgnored(file) && !isIgnored(`${file}/x`));
  assert.deepEqual(packed.sort(), ["LICENSE", "README.md", "extension.js", "package.json"]);
  assert.ok(!isIgnored("node_modules/vscode-languageclient/node.js"));
});

test("the extension uses no interface that is newer than the oldest editor", () => {
  const types = require("@types/vscode/package.json").version;
  assert.equal(manifest.engines.vscode, `^${types}`);
});

test("settings and commands are those of the extension", async () => {
  const text = fs.readFileSync(path.join(root, manifest.main), "utf8");
  const { properties } = manifest.contributes.configuration;
  assert.equal(properties["terrane.path"].default, "terrane");
  for (const { command } of manifest.contributes.commands) assert.ok(text.includes(`"${command}"`), command);
  const restricted = manifest.capabilities.untrustedWorkspaces.restrictedConfigurations;
  assert.deepEqual(restricted, ["terrane.path"], "a folder must not choose the program");
});

test("the project file activates the extension, and other YAML files do not", { skip: project === "" }, () => {
  const patterns = manifest.activationEvents.map((event) => event.replace(/^workspaceContains:/, ""));
  const files = fs.readdirSync(project, { recursive: true }).map(String);
  const activating = files.filter((file) => patterns.some((pattern) => minimatch(file, pattern)));
  assert.deepEqual(activating, ["service_project.yml"]);
});

test("the selector covers the definitions of a project, and no other file", { skip: project === "" }, () => {
  const { DOCUMENTS } = loadExtension(new Editor(project, {}));
  const patterns = DOCUMENTS.flatMap(({ pattern }) => pattern ?? []);
  for (const file of fs.readdirSync(project, { recursive: true }).map(String)) {
    const isDefinition = /\.ya?ml$/.test(file) || /^models\/.*\.sql$/.test(file);
    assert.equal(patterns.some((pattern) => minimatch(path.join(project, file), pattern, { dot: true })), isDefinition, file);
  }
});

test("the program has the command that the extension starts", { skip: program === "" }, () => {
  assert.match(execFileSync(program, ["lsp", "--help"], { encoding: "utf8" }), /--stdio/);
});
