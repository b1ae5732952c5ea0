#!/usr/bin/env node
/** The command `terrane-codegen`: writes the types of a project from a server or a JSON file. */
import { readFile, writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { Client } from "../client.js";
import { generateProject } from "../codegen.js";
import type { ProjectMetadata } from "../codegen.js";
import { listIn } from "../wire.js";
import type { Cube } from "../wire.js";

const USAGE = `usage: terrane-codegen [--output FILE] [--check] URL_OR_FILE

Writes the types of a project. FILE is the JSON of \`GET /api/v1/query/meta/cubes\`, with \`metrics\` beside \`cubes\`
if there are any. The environment variable TERRANE_KEY is the API key of a server.

  --output FILE  write to a file instead of the standard output
  --check        write nothing, and fail if the output file is outdated`;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { output: { type: "string" }, check: { type: "boolean" }, help: { type: "boolean" } },
  });
  const [source] = positionals;
  if (values.help) return void console.log(USAGE);
  if (source === undefined || positionals.length > 1 || (values.check && values.output === undefined)) {
    throw new Error(USAGE);
  }
  const text = generateProject(await readMetadata(source));
  if (values.output === undefined) process.stdout.write(text);
  else if (values.check) await check(values.output, text);
  else await writeFile(values.output, text);
}

async function readMetadata(source: string): Promise<ProjectMetadata> {
  if (/^https?:\/\//.test(source)) {
    const client = new Client({ baseUrl: source, apiKey: process.env["TERRANE_KEY"] || undefined });
    const [cubes, metrics] = await Promise.all([client.cubes(), client.metrics()]);
    return { cubes, metrics };
  }
  const document: unknown = JSON.parse(await readFile(source, "utf8"));
  return { ...(document as ProjectMetadata), cubes: listIn<Cube>(document, "cubes") };
}

async function check(file: string, text: string): Promise<void> {
  if ((await readFile(file, "utf8")) !== text) throw new Error(`\`${file}\` is outdated`);
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : "unknown error");
  process.exitCode = 1;
});
