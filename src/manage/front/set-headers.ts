import type { ServerResponse } from 'node:http'

/** What Koa's `ctx.set` does, without the lists that it makes of what it is given: every request has some. */
export function setHeaders(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
  for (const name in headers) response.setHeader(name, headers[name]!)
}
