/** Credentials of a client. Secrets are private fields, so that inspection and serialization do not show them. */
import { UnauthorizedError } from "./errors.js";
import type { Call, Session } from "./session.js";
import { documentWith } from "./wire.js";
import type { Tokens } from "./wire.js";

const RENEWAL_MARGIN_MS = 30_000;

/** A source of bearer tokens. */
export interface Credentials {
  /** True if the source can replace a rejected token. */
  readonly renewable: boolean;
  /** Returns the token for the next request. A renewable source replaces `refused`, a token that the server rejected. */
  token(session: Session, refused: string | undefined): Promise<string | undefined>;
}

/** The arguments of a client: an API key, an access token, a user with a password, or none of them. */
export interface CredentialOptions {
  apiKey?: string | undefined;
  token?: string | undefined;
  username?: string | undefined;
  password?: string | undefined;
}

/** Returns the credentials that the arguments of a client specify, or throws. */
export function chooseCredentials({ apiKey, token, username, password }: CredentialOptions): Credentials {
  if ((username === undefined) !== (password === undefined)) {
    throw new TypeError("username and password must be given together");
  }
  if ([apiKey, token, username].filter((value) => value !== undefined).length > 1) {
    throw new TypeError("expected one of apiKey, token, or username and password");
  }
  if (username !== undefined && password !== undefined) return new Login(username, password);
  const secret = apiKey ?? token;
  if (secret !== undefined && !/^[\x21-\x7e]+$/.test(secret)) {
    throw new TypeError("expected a credential of visible ASCII characters");
  }
  return new StaticToken(secret);
}

/** An API key or an access token, or undefined for anonymous requests. */
class StaticToken implements Credentials {
  readonly renewable = false;
  readonly #secret: string | undefined;

  constructor(secret: string | undefined) {
    this.#secret = secret;
  }

  async token(): Promise<string | undefined> {
    return this.#secret;
  }
}

type TimedTokens = Tokens & { readonly receivedMs: number };

/**
 * A sign-in with a user name and a password, whose access token is renewed when it expires.
 *
 * One renewal at a time serves all requests, because the server ends a session whose refresh token is used twice. If a
 * request that waits for the renewal is aborted, the renewal continues for the other requests.
 */
class Login implements Credentials {
  readonly renewable = true;
  readonly #user: { username: string; password: string };
  #tokens: TimedTokens | undefined;
  #renewal: Promise<TimedTokens> | undefined;

  constructor(username: string, password: string) {
    this.#user = { username, password };
  }

  async token(session: Session, refused: string | undefined): Promise<string> {
    const tokens = this.#usable(session, refused) ?? (await this.#renewOnce(session));
    return tokens.access_token;
  }

  #renewOnce(session: Session): Promise<TimedTokens> {
    this.#renewal ??= this.#renew(session).finally(() => (this.#renewal = undefined));
    return this.#renewal;
  }

  async #renew(session: Session): Promise<TimedTokens> {
    const old = this.#tokens;
    this.#tokens = undefined;
    const tokens =
      (old && (await this.#refresh(session, old))) ?? (await session.perform(tokenCall("token", this.#user)));
    this.#tokens = { ...tokens, receivedMs: session.clock.monotonicMs() };
    return this.#tokens;
  }

  /** Returns new tokens for the refresh token, or undefined if the session has ended. */
  async #refresh(session: Session, { refresh_token }: Tokens): Promise<Tokens | undefined> {
    try {
      return await session.perform(tokenCall("refresh", { refresh_token }));
    } catch (error) {
      if (error instanceof UnauthorizedError) return undefined;
      throw error;
    }
  }

  /** Returns the tokens if they are valid for at least another 30 seconds, or half of a shorter lifetime. */
  #usable(session: Session, refused: string | undefined): TimedTokens | undefined {
    const tokens = this.#tokens;
    if (tokens === undefined || tokens.access_token === refused) return undefined;
    const lifetimeMs = tokens.expires_in * 1000;
    const usableMs = lifetimeMs - Math.min(RENEWAL_MARGIN_MS, lifetimeMs / 2);
    return session.clock.monotonicMs() < tokens.receivedMs + usableMs ? tokens : undefined;
  }
}

/** Returns the request for tokens. A refresh is never repeated, because its token can be used once. */
function tokenCall(action: "token" | "refresh", body: Record<string, string>): Call<Tokens> {
  return {
    method: "POST",
    path: `/api/v1/auth/${action}`,
    body,
    isIdempotent: action === "token",
    isAuthenticated: false,
    parse: (reply) => documentWith<Tokens>(reply.json(), ["access_token", "refresh_token", "expires_in"]),
  };
}
