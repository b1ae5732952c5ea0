// The extension: starts `terrane lsp` for the projects of the opened folders, and restarts it if its path changes.
//
// In: the setting `terrane.path` and the files of the editor. Out: the features of the language server. Not here: the
// program, and rules about projects, which are in the program.
"use strict";

const vscode = require("vscode");
const { LanguageClient, State } = require("vscode-languageclient/node");

/** The files of projects. The server finds the project of each file, and ignores files outside of projects. */
const DOCUMENTS = [
  { scheme: "file", language: "yaml" },
  { scheme: "file", pattern: "**/*.{yml,yaml}" },
  { scheme: "file", pattern: "**/models/**/*.sql" },
];

/** @type {LanguageClient | undefined} */
let client;
/** The queue of starts and stops, which run one after another. */
let queue = Promise.resolve();

/** @param {vscode.ExtensionContext} context */
async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("terrane.restart", restart),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("terrane.path")) void restart();
    }),
  );
  await enqueue(start);
}

async function deactivate() {
  await enqueue(stop);
}

async function restart() {
  await enqueue(stop);
  await enqueue(start);
}

/** @param {() => Promise<void>} step */
function enqueue(step) {
  queue = queue.then(step, step);
  return queue;
}

async function start() {
  const command = vscode.workspace.getConfiguration("terrane").get("path", "terrane");
  const options = { documentSelector: DOCUMENTS };
  client = new LanguageClient("terrane", "Terrane", { command, args: ["lsp"] }, options);
  try {
    await client.start();
  } catch (error) {
    // The next start or stop does not wait for the user to close the message.
    void report(command, error);
  }
}

async function stop() {
  const stopping = client;
  client = undefined;
  // A client that failed to start has no server to stop.
  if (stopping?.state === State.Running) await stopping.stop();
}

/**
 * Shows that the program cannot be started, with a button that opens the setting.
 * @param {string} command
 * @param {unknown} error
 */
async function report(command, error) {
  const reason = error instanceof Error ? error.message : String(error);
  const open = "Open the setting";
  const message = `\`${command} lsp\` cannot be started: ${reason}. Install Terrane, or set \`terrane.path\`.`;
  if ((await vscode.window.showErrorMessage(message, open)) === open) {
    await vscode.commands.executeCommand("workbench.action.openSettings", "terrane.path");
  }
}

module.exports = { activate, deactivate, DOCUMENTS };
