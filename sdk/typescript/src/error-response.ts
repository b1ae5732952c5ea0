/** Converts unsuccessful responses to errors. This is the only module that reads error bodies. */
import * as errors from "./errors.js";
import { nearestNames } from "./nearest.js";
import { retryAfterMs } from "./retry.js";
import type { Reply } from "./transport.js";
import { isObject } from "./wire.js";

type ErrorClass = typeof errors.TerraneError;

const BY_CODE: ReadonlyMap<string, ErrorClass> = new Map([
  ["INVALID_QUERY", errors.InvalidQueryError],
  ["INVALID_MEASURE", errors.InvalidMeasureError],
  ["INVALID_DIMENSION", errors.InvalidDimensionError],
  ["INVALID_FILTER", errors.InvalidFilterError],
  ["NO_JOIN_PATH", errors.NoJoinPathError],
  ["VALIDATION_ERROR", errors.ValidationError],
  ["UNAUTHORIZED", errors.UnauthorizedError],
  ["TOKEN_EXPIRED", errors.TokenExpiredError],
  ["INVALID_TOKEN", errors.InvalidTokenError],
  ["FORBIDDEN", errors.ForbiddenError],
  ["GUARDRAIL_EXCEEDED", errors.GuardrailExceededError],
  ["NOT_FOUND", errors.NotFoundError],
  ["CONFLICT", errors.ConflictError],
  ["GONE", errors.GoneError],
  ["QUERY_TIMEOUT", errors.QueryTimeoutError],
  ["PAYLOAD_TOO_LARGE", errors.PayloadTooLargeError],
  ["RATE_LIMITED", errors.RateLimitedError],
  ["OVERLOADED", errors.UnavailableError],
  ["WAREHOUSE_UNAVAILABLE", errors.UnavailableError],
  ["STATE_UNAVAILABLE", errors.UnavailableError],
  ["RESULTS_UNAVAILABLE", errors.UnavailableError],
  ["WAREHOUSE_ERROR", errors.WarehouseError],
]);
const BY_STATUS: ReadonlyMap<number, ErrorClass> = new Map([
  [401, errors.UnauthorizedError],
  [403, errors.ForbiddenError],
  [404, errors.NotFoundError],
  [409, errors.ConflictError],
  [410, errors.GoneError],
  [413, errors.PayloadTooLargeError],
  [429, errors.RateLimitedError],
  [503, errors.UnavailableError],
]);

/** Returns the error class for an error code, or for the HTTP status if the code is unknown. */
export function errorClass(code: string | undefined, status = 0): ErrorClass {
  const known = (code === undefined ? undefined : BY_CODE.get(code)) ?? BY_STATUS.get(status);
  return known ?? (status >= 500 ? errors.ServerError : errors.TerraneError);
}

/** Returns the error for an unsuccessful response. */
export function errorFromReply(reply: Reply): errors.TerraneError {
  const body = jsonObject(reply);
  const common = {
    status: reply.status,
    correlationId: correlationId(reply),
    retryAfterMs: retryAfterMs(reply.headers),
  };
  if (!isObject(body["error"])) return errorWithoutCode(body["detail"], common);
  const { code, message, details, correlation_id: id, ...extra } = body["error"];
  const facts = isObject(details) ? { ...extra, ...details } : extra;
  const name = typeof code === "string" ? code : undefined;
  return new (errorClass(name, reply.status))(String(message ?? ""), {
    ...common,
    code: name,
    details: facts,
    nearest: nearest(facts),
    correlationId: typeof id === "string" ? id : common.correlationId,
  });
}

/** Returns the id under which the server logs a request. */
export function correlationId(reply: Reply): string | undefined {
  return reply.headers.get("x-correlation-id") ?? undefined;
}

function errorWithoutCode(detail: unknown, fields: errors.ErrorFields & { status: number }): errors.TerraneError {
  const { status } = fields;
  if (typeof detail === "string") return new (errorClass(undefined, status))(detail, fields);
  const isKnown = BY_STATUS.has(status) || status >= 500;
  const message = `the server returned status ${status} without an error of the REST interface`;
  return new (isKnown ? errorClass(undefined, status) : errors.ResponseError)(message, fields);
}

/** Returns the names that the server suggests. The lists `available_…` are sorted by similarity. */
function nearest(details: Record<string, unknown>): string[] {
  for (const [name, value] of Object.entries(details)) {
    if (name.startsWith("available_") && Array.isArray(value)) return value.map(String);
  }
  const { known_fields: known, field } = details;
  return Array.isArray(known) && typeof field === "string" ? nearestNames(field, known.map(String)) : [];
}

function jsonObject(reply: Reply): Record<string, unknown> {
  try {
    const body = reply.json();
    return isObject(body) ? body : {};
  } catch {
    return {};
  }
}
