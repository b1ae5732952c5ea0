/** The real server of integration tests, which serves `examples/flights`. */
import { Client } from "@terrane/client";
import type { ClientOptions } from "@terrane/client";
import type { Project } from "./project.js";

export const {
  TERRANE_URL: url,
  TERRANE_KEY: apiKey,
  TERRANE_USERNAME: username,
  TERRANE_PASSWORD: password,
} = process.env;

/** The options of a test: the reason to skip it if a variable of the environment is absent. */
export const needsServer = { skip: missing({ TERRANE_URL: url, TERRANE_KEY: apiKey }) };
export const needsUser = {
  skip: missing({ TERRANE_URL: url, TERRANE_USERNAME: username, TERRANE_PASSWORD: password }),
};

/** Returns a client of the server, with the key of the environment if there is no other credential. */
export function connect(options: Partial<ClientOptions> = { apiKey }): Client<Project> {
  return new Client<Project>({ baseUrl: url ?? "http://localhost", ...options });
}

function missing(variables: Record<string, string | undefined>): string | false {
  const names = Object.keys(variables).filter((name) => !variables[name]);
  return names.length > 0 && `${names.join(", ")} is not set; the test needs a real server with examples/flights`;
}
