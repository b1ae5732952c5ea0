/** The package as its users see it: the version, the command, and modules without Node. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { VERSION } from "@terrane/client";
import { needsServer, url } from "./server.js";

const ROOT = new URL("../", import.meta.url);
const path = (name: string) => fileURLToPath(new URL(name, ROOT));
const node = (...args: string[]) => promisify(execFile)(process.execPath, args, { cwd: path(".") });
const codegen = (...args: string[]) => node("dist/bin/terrane-codegen.js", ...args);

test("the version is that of the package", async () => {
  const { version, dependencies } = JSON.parse(await readFile(path("package.json"), "utf8"));
  assert.equal(VERSION, version);
  assert.equal(dependencies, undefined);
});

test("browsers send only headers that the server allows to other origins", async () => {
  const program = `
    const { write } = process.stdout, stdout = process.stdout;
    delete globalThis.process;
    const { Client } = await import("@terrane/client");
    const headers = [];
    const fetch = async (url, init) => {
      headers.push(...Object.keys(init.headers));
      return Response.json({ job_id: "j", status: "pending" });
    };
    const client = new Client({ baseUrl: "http://localhost", apiKey: "k", fetch });
    await client.submit({ measures: ["a.b"] });
    write.call(stdout, headers.sort().join());
  `;
  const { stdout } = await node("--input-type=module", "--eval", program);
  assert.equal(stdout, "accept,authorization,content-type");
});

test("the command writes the types of a file", async () => {
  await mkdir(path("build/codegen"), { recursive: true });
  const [input, output] = [path("build/codegen/cubes.json"), path("build/codegen/project.ts")];
  await writeFile(input, JSON.stringify({ cubes: [] }));
  const { stdout } = await codegen(input);
  assert.match(stdout, /export interface Project \{\n  cubes: \{\};\n  metrics: \{\};\n\}\n$/);
  await codegen("--output", output, input);
  assert.equal(await readFile(output, "utf8"), stdout);
  await codegen("--output", output, "--check", input);
  await writeFile(output, "");
  await assert.rejects(codegen("--output", output, "--check", input), /is outdated/);
});

for (const args of [[], ["a", "b"], ["--check", "a"], ["--key", "k"], ["package.json"], ["absent.json"]]) {
  test(`the command refuses the arguments \`${args.join(" ")}\``, async () => {
    await assert.rejects(codegen(...args), { code: 1 });
  });
}

test("the command writes the types of a server", needsServer, async () => {
  await codegen("--output", "test/project.ts", "--check", url!);
});

test("the types of the interface are those of the server", needsServer, async () => {
  const openapi = `${url!}/openapi.json`;
  await node("scripts/generate.mjs", "--check", openapi);
  const document = await (await fetch(openapi)).json();
  delete document.components.schemas.Measure.properties.rolling_window;
  await mkdir(path("build/interface"), { recursive: true });
  await writeFile(path("build/interface/openapi.json"), JSON.stringify(document));
  await assert.rejects(node("scripts/generate.mjs", "--check", "build/interface/openapi.json"), /api\.ts is outdated/);
});
