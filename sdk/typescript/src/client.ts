/** The client: the methods that send requests. */
import { systemClock } from "./clock.js";
import type { Clock } from "./clock.js";
import { chooseCredentials } from "./credentials.js";
import type { CredentialOptions } from "./credentials.js";
import { NotFoundError } from "./errors.js";
import { Job } from "./jobs.js";
import { nearestNames } from "./nearest.js";
import type { CubeName, ProjectTypes, RowOf, Selection } from "./project.js";
import { Query } from "./query.js";
import type { QueryFields, QueryLike, QueryRunner } from "./query.js";
import type { ArrowStream, QueryResult } from "./results.js";
import { retryPolicy } from "./retry.js";
import type { RetryPolicy } from "./retry.js";
import * as routes from "./routes.js";
import { Session } from "./session.js";
import type { CallOptions } from "./session.js";
import { checkedBaseUrl } from "./settings.js";
import { checkedLimit } from "./signals.js";
import { Transport } from "./transport.js";
import type { Fetch } from "./transport.js";
import type {
  Cube,
  Dimension,
  Explanation,
  Health,
  Interpretation,
  JobState,
  Language,
  Measure,
  Metric,
  Row,
  SearchOptions,
  SearchResults,
  Sql,
} from "./wire.js";

/** The arguments of a client. Without a credential, requests are anonymous. */
export interface ClientOptions extends CredentialOptions {
  /** The address of the server, such as `https://terrane.example.org`. */
  baseUrl: string;
  /** The timeout of each attempt to send a request and read its response, in milliseconds. Default: 60,000. */
  timeoutMs?: number | undefined;
  /** The time limit of a request with its sign-in, retries and waits, in milliseconds. Default: none. */
  deadlineMs?: number | undefined;
  retry?: Partial<RetryPolicy> | undefined;
  /** A replacement of the global `fetch`. */
  fetch?: Fetch | undefined;
  /** A replacement of the system clock, for tests. */
  clock?: Clock | undefined;
}

/** A client of a Terrane server. `P` is the type of the project, which `terrane-codegen` writes. */
export class Client<P extends ProjectTypes = ProjectTypes> implements QueryRunner {
  readonly baseUrl: string;
  readonly #session: Session;
  readonly #requestMs: number;

  constructor({ baseUrl, timeoutMs = 60_000, deadlineMs, retry, fetch, clock, ...credentials }: ClientOptions) {
    this.baseUrl = checkedBaseUrl(baseUrl);
    const attemptMs = checkedLimit("timeoutMs", timeoutMs);
    this.#requestMs = Math.min(attemptMs, checkedLimit("deadlineMs", deadlineMs ?? Infinity));
    this.#session = new Session({
      transport: new Transport(this.baseUrl, attemptMs, fetch),
      credentials: chooseCredentials(credentials),
      retry: retryPolicy(retry),
      clock: clock ?? systemClock,
      deadlineMs,
    });
  }

  /** Starts a query of a cube. */
  from<const C extends CubeName<P>>(cube: C): Query<P, C> {
    return new Query<P, C>(this, cube);
  }

  /** Runs a query: one of `from`, or the fields of the REST interface. */
  query<S extends Selection>(query: Query<any, any, S>, options?: CallOptions): Promise<QueryResult<RowOf<S>>>;
  query(query: QueryFields, options?: CallOptions): Promise<QueryResult<Row>>;
  query(query: QueryLike, options?: CallOptions): Promise<QueryResult<any>> {
    return this.#session.perform(routes.query<unknown>(fieldsOf(query)), options);
  }

  /** Runs a query and returns its Arrow stream, which has exact types and up to 10,000,000 rows. */
  arrow(query: QueryLike, options?: CallOptions): Promise<ArrowStream> {
    return this.#session.perform(routes.arrow(fieldsOf(query)), options);
  }

  /** Returns the SQL of a query without running it; `inline` puts the values into the statement. */
  sql(query: QueryLike, { inline = false, ...options }: CallOptions & { inline?: boolean } = {}): Promise<Sql> {
    return this.#session.perform(routes.sql(fieldsOf(query), inline), options);
  }

  /** Explains the members, joins, policies and plan of a query. */
  explain(query: QueryLike, options?: CallOptions): Promise<Explanation> {
    return this.#session.perform(routes.explain(fieldsOf(query)), options);
  }

  /** Runs a query as a job, which may take longer and return more rows than `query`. */
  submit<S extends Selection>(query: Query<any, any, S>, options?: CallOptions): Promise<Job<RowOf<S>>>;
  submit(query: QueryFields, options?: CallOptions): Promise<Job<Row>>;
  async submit(query: QueryLike, options?: CallOptions): Promise<Job<any>> {
    return this.#handle(await this.#session.perform(routes.submit(fieldsOf(query)), options));
  }

  /** Returns a job by its identifier. */
  async job(id: string, options?: CallOptions): Promise<Job<Row>> {
    return this.#handle(await this.#session.perform(routes.job(id), options));
  }

  /** Lists the jobs of the caller, newest first. */
  async jobs(options?: CallOptions): Promise<Job<Row>[]> {
    return (await this.#session.perform(routes.jobs, options)).map((state) => this.#handle(state));
  }

  /** Lists the cubes that the caller may see. */
  cubes(options?: CallOptions): Promise<Cube[]> {
    return this.#session.perform(routes.cubes, options);
  }

  /** Reads a cube. For an unknown name, `NotFoundError.nearest` contains similar names. */
  async cube(name: CubeName<P>, options?: CallOptions): Promise<Cube> {
    try {
      return await this.#session.perform(routes.cube(name), options);
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      const known = (await this.cubes(options)).map((cube) => cube.name);
      throw new NotFoundError(error.message, { ...error, nearest: nearestNames(name, known) });
    }
  }

  /** Lists the measures of all cubes. */
  measures(options?: CallOptions): Promise<Measure[]> {
    return this.#session.perform(routes.measures, options);
  }

  /** Lists the metrics of the project. */
  metrics(options?: CallOptions): Promise<Metric[]> {
    return this.#session.perform(routes.metrics, options);
  }

  /** Lists the dimensions of all cubes. */
  dimensions(options?: CallOptions): Promise<Dimension[]> {
    return this.#session.perform(routes.dimensions, options);
  }

  /** Searches for cubes, members and metrics. */
  search(text: string, { signal, deadlineMs, ...fields }: CallOptions & SearchOptions = {}): Promise<SearchResults> {
    return this.#session.perform(routes.search(text, fields), { signal, deadlineMs });
  }

  /** Translates a question in plain language into a query, which `query` runs. */
  ask(
    text: string,
    { language = "en", ...options }: CallOptions & { language?: Language } = {},
  ): Promise<Interpretation> {
    return this.#session.perform(routes.ask(text, language), options);
  }

  /** Returns the state of the server and of its dependencies. Needs no credential. */
  health(options?: CallOptions): Promise<Health> {
    return this.#session.perform(routes.health, options);
  }

  #handle<R>(state: JobState): Job<R> {
    return new Job<R>(this.#session, this.#requestMs, state);
  }
}

function fieldsOf(query: QueryLike): QueryFields {
  return query instanceof Query ? query.toJSON() : query;
}
