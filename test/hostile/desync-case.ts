import type { Framing } from './desync-messages.ts'

/** What a client sends over one connection, and every allowed result. */
export interface Case {
  readonly family: string
  readonly name: string
  /** One character for each byte. */
  readonly bytes: string
  /** The requests that an upstream is to see, in order, and no other. Each whole one is answered. */
  readonly forwarded: readonly Forwarded[]
  /** Our own answer, which is the last; `null`: none. */
  readonly refused: number | null
  /** Afterwards: the client may go on, or we have closed the connection; `client`: it closes its side itself, first. */
  readonly end: 'open' | 'closed' | 'client'
  /** An upstream whose log does not tell the client of such a request. */
  readonly except: string | null
}

export interface Forwarded {
  /** Method and target. */
  readonly line: string
  readonly host: string
  readonly framing: Framing
  readonly body: string
  /** One that breaks off may be seen in part, or not at all; never whole. */
  readonly isWhole: boolean
  /** What of it may be seen: by the client's word it leaves the pool. */
  readonly isUpgrade: boolean
}

/** Stands for the number of the run in targets and hosts, by which what an upstream sees is told to be of which. */
export const MARK = '@@@@@@'
export const HOST = 'Host: a\r\n'
/** What a request may carry and no upstream may ever see as a request. */
export const INNER = `GET /${MARK}/smuggled HTTP/1.1\r\n${HOST}\r\n`
/** What may follow a request, and is one. */
export const NEXT = `GET /${MARK}/next HTTP/1.1\r\n${HOST}\r\n`
export const NEXT_SEEN = seen(`GET /${MARK}/next`)

export function seen(line: string, body = '', more: Partial<Forwarded> = {}): Forwarded {
  const framing = body === '' ? 'none' : 'length'
  return { line, host: 'a', framing, body, isWhole: true, isUpgrade: false, ...more }
}

export function get(fields = '', path = ''): string {
  return `GET /${MARK}${path} HTTP/1.1\r\n${HOST}${fields}\r\n`
}

export function post(fields: string, body = ''): string {
  return `POST /${MARK} HTTP/1.1\r\n${HOST}${fields}\r\n${body}`
}

export const GET_SEEN = seen(`GET /${MARK}`)

/** We are asked for the length of a POST that has no body, too. */
export function postSeen(body = '', framing: Framing = 'length', more: Partial<Forwarded> = {}): Forwarded {
  return seen(`POST /${MARK}`, body, { framing, ...more })
}

/** A chunked body of one chunk. */
export function chunked(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`
}

/** Forwarded as these requests, and the connection goes on. */
export function served(name: string, bytes: string, ...forwarded: readonly Forwarded[]): Row {
  return { name, bytes, forwarded, refused: null, end: 'open', except: null }
}

/** The same, and the connection ends after the last answer. */
export function servedLast(name: string, bytes: string, ...forwarded: readonly Forwarded[]): Row {
  return { name, bytes, forwarded, refused: null, end: 'closed', except: null }
}

/** Answered by us with this status, after these have been served, and the connection ends. */
export function refused(
  name: string,
  status: number,
  bytes: string,
  ...forwarded: readonly Forwarded[]
): Row {
  return { name, bytes, forwarded, refused: status, end: 'closed', except: null }
}

/** The client closes its side after this; nothing that was not whole is ever answered by the app. */
export function cut(
  name: string,
  status: number | null,
  bytes: string,
  ...forwarded: readonly Forwarded[]
): Row {
  return { name, bytes, forwarded, refused: status, end: 'client', except: null }
}

/** Begun, and never to be whole. */
export function begun(forwarded: Forwarded): Forwarded {
  return { ...forwarded, isWhole: false }
}

export function except(name: string, row: Row): Row {
  return { ...row, except: name }
}

export type Row = Omit<Case, 'family'>

export function family(name: string, rows: readonly Row[]): readonly Case[] {
  return rows.map((row) => ({ family: name, ...row }))
}
