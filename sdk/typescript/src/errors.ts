/**
 * The errors for the server's error codes, and errors of the client itself.
 *
 * No error contains a request or a credential. An aborted call rejects with the reason of its signal instead.
 */

/** The properties of an error other than its message. */
export interface ErrorFields {
  code?: string | undefined;
  status?: number | undefined;
  details?: Record<string, unknown> | undefined;
  nearest?: readonly string[] | undefined;
  correlationId?: string | undefined;
  retryAfterMs?: number | undefined;
}

/** The base of all errors of this package. */
export class TerraneError extends Error {
  /** The error code of the server. Errors of the client and of unknown cubes have none. */
  readonly code: string | undefined;
  /** The HTTP status. */
  readonly status: number | undefined;
  readonly details: Record<string, unknown>;
  /** The names that the server suggests for an unknown name, nearest first. */
  readonly nearest: readonly string[];
  /** The id of the request in the log of the server. */
  readonly correlationId: string | undefined;
  /** The time that the server asks the client to wait before the next request, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, fields: ErrorFields = {}) {
    super(message);
    this.name = new.target.name;
    this.code = fields.code;
    this.status = fields.status;
    this.details = fields.details ?? {};
    this.nearest = fields.nearest ?? [];
    this.correlationId = fields.correlationId;
    this.retryAfterMs = fields.retryAfterMs;
  }
}

/** The server could not be reached, or closed the connection early. */
export class ConnectionFailedError extends TerraneError {}

/** The server did not respond within the timeout or the deadline of the client. */
export class ClientTimeoutError extends TerraneError {}

/** The response is incomplete, or is not a response of the REST interface, such as the page of a proxy. */
export class ResponseError extends TerraneError {}

/** An optional package is not installed. */
export class MissingPeerError extends TerraneError {}

/** A job did not end within the timeout. It continues on the server. */
export class JobTimeoutError extends TerraneError {}

/** A job was cancelled and has no result. */
export class JobCancelledError extends TerraneError {}

/** The query is malformed or refers to an unknown name. */
export class InvalidQueryError extends TerraneError {}

/** A measure is unknown. */
export class InvalidMeasureError extends InvalidQueryError {}

/** A dimension or a segment is unknown. */
export class InvalidDimensionError extends InvalidQueryError {}

/** An operator or a value is invalid for the type of the member. */
export class InvalidFilterError extends InvalidQueryError {}

/** A measure cannot be grouped or filtered by a member. */
export class NoJoinPathError extends InvalidQueryError {}

/** The request is well-formed but was refused, for example because of a reused idempotency key. */
export class ValidationError extends TerraneError {}

/** A credential is missing or invalid. */
export class UnauthorizedError extends TerraneError {}

/** The access token has expired. */
export class TokenExpiredError extends UnauthorizedError {}

/** The access token is invalid, or its session has ended. */
export class InvalidTokenError extends UnauthorizedError {}

/** The caller lacks a scope, or a policy denies the request. */
export class ForbiddenError extends TerraneError {}

/** The query exceeds a limit for a single query. */
export class GuardrailExceededError extends ForbiddenError {}

/** The cube, job or route does not exist. */
export class NotFoundError extends TerraneError {}

/** The state of the resource does not allow the request. */
export class ConflictError extends TerraneError {}

/** The result of a job has expired, was deleted, or is no longer accessible to the caller. */
export class GoneError extends TerraneError {}

/** The query took longer than the server allows; submit it as a job. */
export class QueryTimeoutError extends TerraneError {}

/** The request body is larger than the server allows. */
export class PayloadTooLargeError extends TerraneError {}

/** The caller sent too many requests; `retryAfterMs` is the time to wait. */
export class RateLimitedError extends TerraneError {}

/** The server, its warehouse or its state database is overloaded or down. */
export class UnavailableError extends TerraneError {}

/** The server has a fault. */
export class ServerError extends TerraneError {}

/** The warehouse refused the statement. */
export class WarehouseError extends ServerError {}
