import type { ServerResponse } from 'node:http'

/**
 * The headers of an answer are a list of names and values until it is known how it is sent: most are written from that at
 * once, and never get into the table that Node, and Koa with it, keeps of headers that may change.
 */
export function addHeaders(head: string[], headers: Readonly<Record<string, string>>): void {
  for (const name in headers) head.push(name, headers[name]!)
}

/** For what is sent by Koa: before anything of its own is set. */
export function putHead({ res, state }: Answering): void {
  const { head } = state
  for (let i = 0; i < head.length; i += 2) res.setHeader(head[i]!, head[i + 1]!)
}

interface Answering {
  readonly res: ServerResponse
  readonly state: { readonly head: readonly string[] }
}
