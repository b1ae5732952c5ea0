/** Checks of the arguments of a client. Messages contain no values, because these may be secrets. */

/** Returns the base address without a slash at its end, or throws. */
export function checkedBaseUrl(baseUrl: string): string {
  if (!URL.canParse(baseUrl)) throw new TypeError("baseUrl is not a URL");
  const url = new URL(baseUrl);
  if (!["http:", "https:"].includes(url.protocol)) throw new TypeError("baseUrl must begin with http:// or https://");
  if (url.username || url.password || url.search || url.hash) {
    throw new TypeError("baseUrl must not contain credentials, a query or a fragment");
  }
  return url.href.replace(/\/+$/, "");
}
