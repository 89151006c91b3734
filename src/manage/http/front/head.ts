import type { ServerResponse } from 'node:http'

/**
 * The headers of an answer are a list of names and values until the server knows how to send the answer. Most
 * answers are written directly from this list. They skip the table that Node and Koa keep for headers that
 * may still change.
 */
export function addHeaders(head: string[], headers: Readonly<Record<string, string>>): void {
  for (const name in headers) head.push(name, headers[name]!)
}

/** For answers that Koa sends. Call it before any other header is set. */
export function putHead({ res, state }: HeadContext): void {
  const { head } = state
  for (let i = 0; i < head.length; i += 2) res.setHeader(head[i]!, head[i + 1]!)
}

interface HeadContext {
  readonly res: ServerResponse
  readonly state: { readonly head: readonly string[] }
}
