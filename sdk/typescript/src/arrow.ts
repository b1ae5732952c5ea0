/** Decoding of Arrow streams by the optional package `apache-arrow`, which is loaded on first use. */
import type { Table } from "apache-arrow";
import { MissingPeerError } from "./errors.js";
import type { ArrowStream } from "./results.js";

/** Returns the table of an Arrow stream. */
export async function toTable(stream: ArrowStream): Promise<Table> {
  const { tableFromIPC } = await load();
  return tableFromIPC(stream.bytes);
}

async function load(): Promise<typeof import("apache-arrow")> {
  try {
    return await import("apache-arrow");
  } catch {
    throw new MissingPeerError("`apache-arrow` is not installed");
  }
}
