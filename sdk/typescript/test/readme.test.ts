/** The examples of the README, which must compile with strict types and run against a real server in their order. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import ts from "typescript";
import { apiKey, needsServer, url } from "./server.js";

const ROOT = new URL("../", import.meta.url);
const FOLDER = new URL("build/readme/", ROOT);

/** Writes the examples as one module and returns its path. */
async function writeExamples(): Promise<string> {
  const readme = await readFile(new URL("README.md", ROOT), "utf8");
  const blocks = [...readme.matchAll(/```ts\n(.*?)```/gs)].map((match) => match[1]!);
  await mkdir(FOLDER, { recursive: true });
  await copyFile(new URL("test/project.ts", ROOT), new URL("project.ts", FOLDER));
  const file = new URL("examples.ts", FOLDER);
  await writeFile(file, blocks.join("\n").replace("http://127.0.0.1:8000", url!));
  return fileURLToPath(file);
}

/** Compiles a module beside its source and returns the messages of the compiler. */
function compile(file: string): string[] {
  const { config } = ts.readConfigFile(fileURLToPath(new URL("tsconfig.test.json", ROOT)), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, fileURLToPath(ROOT));
  const program = ts.createProgram([file], {
    ...options,
    rootDir: fileURLToPath(FOLDER),
    outDir: fileURLToPath(FOLDER),
  });
  program.emit();
  return ts.getPreEmitDiagnostics(program).map((problem) => ts.flattenDiagnosticMessageText(problem.messageText, "\n"));
}

test("examples run", needsServer, async () => {
  const file = await writeExamples();
  assert.deepEqual(compile(file), []);
  const env = { ...process.env, TERRANE_KEY: apiKey };
  const { stdout } = await promisify(execFile)(process.execPath, [file.replace(/\.ts$/, ".js")], { env });
  const [first, ...others] = stdout.trimEnd().split("\n");
  assert.match(first!, /^[A-Z]{3} 2013-0[1-3] \d+ \d+ /);
  assert.match(others.at(-2)!, /^complete \d+$/);
  assert.equal(others.at(-1), "INVALID_MEASURE flights.count");
});
