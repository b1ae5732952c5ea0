// An editor for tests: the part of VS Code's interface that the extension and `vscode-languageclient` use.
//
// In: documents, settings, and the names of the interface from `@types/vscode`; any other name is an error. Out: the
// registered providers, diagnostics and messages. Not here: windows.
"use strict";

const { EventEmitter } = require("node:events");
const fs = require("node:fs");
const Module = require("node:module");
const path = require("node:path");
const minimatch = require("minimatch");
const ts = require("typescript");
const { URI } = require("vscode-uri");

/** Returns an event of VS Code's interface, and the function that fires it. */
function event() {
  const emitter = new EventEmitter();
  emitter.setMaxListeners(0);
  const subscribe = (listener, self, disposables) => {
    const bound = listener.bind(self);
    emitter.on("event", bound);
    const disposable = { dispose: () => emitter.off("event", bound) };
    disposables?.push(disposable);
    return disposable;
  };
  const fire = (value) => void emitter.emit("event", value);
  return { subscribe, fire };
}

class Position {
  constructor(line, character) {
    Object.assign(this, { line, character });
  }
}

class Range {
  constructor(...ends) {
    const [start, end] = ends.length === 2 ? ends : [new Position(ends[0], ends[1]), new Position(ends[2], ends[3])];
    Object.assign(this, { start, end });
  }
}

class Location {
  constructor(uri, range) {
    Object.assign(this, { uri, range });
  }
}

class MarkdownString {
  constructor(value = "") {
    this.value = value;
  }
}

class WorkspaceEdit {
  edits = new Map();
  set(uri, edits) {
    this.edits.set(uri.toString(), [...(this.edits.get(uri.toString()) ?? []), ...edits]);
  }

  replace(uri, range, newText) {
    this.set(uri, [{ range, newText }]);
  }
}

class TestEventEmitter {
  constructor() {
    const { subscribe, fire } = event();
    Object.assign(this, { event: subscribe, fire, dispose: () => {} });
  }
}

class CancellationTokenSource {
  token = { isCancellationRequested: false, onCancellationRequested: event().subscribe };
  cancel() {}
  dispose() {}
}

const CLASSES = { Position, Range, Location, MarkdownString, WorkspaceEdit, CancellationTokenSource, Uri: URI };

/** Returns a class that stores the arguments of its constructor by their names. */
function recordClass(names) {
  return class {
    constructor(...values) {
      names.forEach((name, index) => values[index] !== undefined && Object.assign(this, { [name]: values[index] }));
    }
  };
}

/** Returns the values of an enumeration. */
function enumOf(declaration) {
  let next = 0;
  const values = {};
  for (const member of declaration.members) {
    const value = member.initializer?.getText();
    next = value === undefined ? next : Number(value);
    values[member.name.getText()] = next++;
  }
  return values;
}

/** Returns the declarations of the module `vscode`: enumerations and classes, and the names of each namespace. */
function readInterface() {
  const file = path.join(path.dirname(require.resolve("@types/vscode/package.json")), "index.d.ts");
  const source = ts.createSourceFile(file, fs.readFileSync(file, "utf8"), ts.ScriptTarget.Latest, true);
  const values = {};
  const namespaces = {};
  const visit = (node) => {
    if (ts.isEnumDeclaration(node)) values[node.name.text] = enumOf(node);
    if (ts.isClassDeclaration(node)) {
      const constructors = node.members.filter(ts.isConstructorDeclaration);
      values[node.name?.text ?? ""] = recordClass(constructors[0]?.parameters.map((item) => item.name.getText()) ?? []);
    }
    if (ts.isModuleDeclaration(node) && node.name.text !== "vscode") {
      const statements = node.body.statements;
      const names = statements.flatMap((item) =>
        ts.isFunctionDeclaration(item)
          ? [item.name?.text ?? ""]
          : ts.isVariableStatement(item)
            ? item.declarationList.declarations.map((declaration) => declaration.name.getText())
            : [],
      );
      namespaces[node.name.text] = new Set([...(namespaces[node.name.text] ?? []), ...names]);
    } else {
      ts.forEachChild(node, visit);
    }
  };
  visit(source);
  return { values: { ...values, ...CLASSES, EventEmitter: TestEventEmitter }, namespaces };
}

/** A document whose whole text changes at once. */
class Document {
  constructor(file, languageId) {
    this.uri = URI.file(file);
    this.fileName = file;
    this.languageId = languageId;
    this.version = 1;
    this.text = fs.readFileSync(file, "utf8");
    this.isClosed = false;
  }
  getText() {
    return this.text;
  }
  /** Returns the place after the first occurrence of a word. */
  after(word) {
    const end = this.text.indexOf(word) + word.length;
    const lines = this.text.slice(0, end).split("\n");
    return new Position(lines.length - 1, lines.at(-1)?.length ?? 0);
  }
}

/** Returns true if a filter of a selector covers a document. Globs of VS Code match names that begin with a dot. */
function covers({ scheme, language, pattern }, document) {
  const glob = typeof pattern === "string" ? pattern : pattern && `${pattern.baseUri?.fsPath ?? pattern.base}/${pattern.pattern}`;
  return (
    (scheme ?? document.uri.scheme) === document.uri.scheme &&
    (language ?? document.languageId) === document.languageId &&
    (glob === undefined || minimatch(document.uri.fsPath, glob, { dot: true }))
  );
}

class Editor {
  providers = new Map();
  diagnostics = new Map();
  errors = [];
  documents = [];
  commands = new Map();
  events = new Map();
  changed = event();

  constructor(folder, settings) {
    this.folder = folder;
    this.settings = settings;
    const { values, namespaces } = readInterface();
    const parts = { workspace: this.workspace(), languages: this.languages(), window: this.window(), env: ENV };
    parts["commands"] = { registerCommand: this.registerCommand, executeCommand: async () => {} };
    for (const [name, known] of Object.entries(namespaces)) values[name] = this.namespace(name, known, parts[name] ?? {});
    this.api = { ...values, version: require("@types/vscode/package.json").version.replace(/\.\d+$/, ".0") };
  }

  /**
   * Returns a namespace. Events never fire unless a test fires them, and providers are recorded.
   */
  namespace(space, known, part) {
    return new Proxy(part, {
      get: (target, key) => {
        const name = String(key);
        if (name in target) return target[name];
        if (!known.has(name)) throw new Error(`the editor's interface has no \`${space}.${name}\``);
        if (/^on[A-Z]/.test(name)) return this.event(name).subscribe;
        const provider = /^register(\w+)Provider$/.exec(name)?.[1];
        if (provider === undefined) throw new Error(`the editor of the tests has no \`${space}.${name}\``);
        return (...args) => {
          this.providers.set(provider, args.find((item) => Object.keys(item).some((key) => key.startsWith("provide"))));
          return { dispose: () => this.providers.delete(provider) };
        };
      },
    });
  }

  event(name) {
    const found = this.events.get(name) ?? event();
    this.events.set(name, found);
    return found;
  }

  registerCommand = (name, run) => {
    this.commands.set(name, run);
    return { dispose: () => this.commands.delete(name) };
  };

  workspace() {
    const editor = this;
    return {
      get textDocuments() {
        return editor.documents;
      },
      workspaceFolders: [{ uri: URI.file(this.folder), name: path.basename(this.folder), index: 0 }],
      notebookDocuments: [],
      getConfiguration: (section = "") => ({
        get: (key, value) =>
          this.settings[section === "" ? key : `${section}.${key}`] ?? value,
      }),
      createFileSystemWatcher: () => ({
        onDidCreate: event().subscribe,
        onDidChange: event().subscribe,
        onDidDelete: event().subscribe,
        dispose: () => {},
      }),
    };
  }

  languages() {
    return {
      match: (selector, document) =>
        [selector].flat().some((filter) => covers(filter, document)) ? 10 : 0,
      createDiagnosticCollection: () => ({
        set: (uri, found) => {
          this.diagnostics.set(uri.toString(), found);
          this.changed.fire();
        },
        delete: (uri) => this.diagnostics.delete(uri.toString()),
        clear: () => this.diagnostics.clear(),
        dispose: () => this.diagnostics.clear(),
      }),
    };
  }

  window() {
    const show = async (message) => {
      this.errors.push(message);
      this.changed.fire();
    };
    const channel = { append() {}, appendLine() {}, show() {}, clear() {}, dispose() {} };
    return {
      activeTextEditor: undefined,
      createOutputChannel: () => channel,
      tabGroups: { all: [], onDidChangeTabs: event().subscribe },
      showErrorMessage: show,
      showWarningMessage: show,
      showInformationMessage: async () => {},
    };
  }

  /** Opens a file. */
  open(file, languageId = "yaml") {
    const document = new Document(path.join(this.folder, file), languageId);
    this.documents.push(document);
    this.event("onDidOpenTextDocument").fire(document);
    return document;
  }

  /** Replaces a part of a document. */
  change(document, from, to) {
    if (!document.text.includes(from)) throw new Error(`\`${from}\` is not in ${document.fileName}`);
    const lines = document.text.split("\n");
    const range = new Range(0, 0, lines.length - 1, lines.at(-1)?.length ?? 0);
    const rangeLength = document.text.length;
    document.text = document.text.replace(from, to);
    document.version += 1;
    const contentChanges = [{ range, rangeOffset: 0, rangeLength, text: document.text }];
    this.event("onDidChangeTextDocument").fire({ document, contentChanges, reason: undefined });
  }

  /** Calls a function after every message until it returns a value, and returns this value. */
  async until(read) {
    const deadline = Date.now() + 30_000;
    for (let value = read(); ; value = read()) {
      if (value) return value;
      if (Date.now() > deadline) throw new Error(`nothing after 30 s: ${read}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

const ENV = { appName: "tests", language: "en" };

/** Loads the extension into an editor. */
function loadExtension(editor) {
  const loader = Module;
  const load = loader._load;
  loader._load = (name, ...rest) =>
    name === "vscode" ? editor.api : load(name, ...rest);
  try {
    const isPart = (file) => /vscode-languageclient|extension\.js$/.test(file);
    Object.keys(require.cache).filter(isPart).forEach((file) => delete require.cache[file]);
    return require("../extension.js");
  } finally {
    loader._load = load;
  }
}

module.exports = { Editor, loadExtension };
