import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { Owner } from '../store/databases.ts'
import type { Answered } from './management.ts'
import { dialled } from './talk.ts'

// Those that the protocol's own authors have written, and what no client sends.

const WHO = { name: 'test', version: '1.0.0' }

/** The SDK's second version, which speaks 2026-07-28; or `legacy`, what came before. */
export async function connected(t: Owner, url: string, key: string, mode: 'auto' | 'legacy' = 'auto') {
  const client = new Client(WHO, { versionNegotiation: { mode } })
  t.teardown(() => client.close())
  const requestInit = { headers: { authorization: `Bearer ${key}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit }))
  return client
}

/** The SDK's first version. */
export async function firstConnected(t: Owner, url: string, key: string) {
  const client = new FirstClient(WHO)
  t.teardown(() => client.close())
  const requestInit = { headers: { authorization: `Bearer ${key}` } }
  // Its own types are not written for exactOptionalPropertyTypes.
  await client.connect(new FirstTransport(new URL(`${url}/mcp`), { requestInit }) as Transport)
  return client
}

/** A request as it stands in 2026-07-28. */
export function modern(method: string, params: Record<string, unknown> = {}, id: unknown = 1) {
  return {
    jsonrpc: '2.0',
    id,
    method,
    params: { ...params, _meta: { ...ENVELOPE, ...Object(params['_meta']) } },
  }
}

/** One before that. */
export function legacy(method: string, params: Record<string, unknown> = {}, id: unknown = 1) {
  return { jsonrpc: '2.0', id, method, params }
}

/** What the protocol wants in headers, too. */
export function headersFor(key: string, message: unknown): Record<string, string> {
  const { method, params } = Object(message) as ReturnType<typeof modern>
  const base = { ...BASE, authorization: `Bearer ${key}` }
  if (Object(params)._meta?.[VERSION] === undefined) return base
  const { name, uri } = params as { name?: string; uri?: string }
  return {
    ...base,
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    ...(name === undefined && uri === undefined ? {} : { 'mcp-name': (name ?? uri)! }),
  }
}

/** Sends a message, or what is none, and reads whichever form the answer has. */
export async function sent(
  url: string,
  key: string,
  message: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answered> {
  const body = typeof message === 'string' ? message : JSON.stringify(message)
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { ...headersFor(key, message), ...headers },
    body,
  })
  const text = await response.text()
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
  const data = isStream ? (/^data: (.*)$/m.exec(text)?.[1] ?? '') : text
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
  const read = (data === '' ? null : JSON.parse(data)) as any
  return { status: response.status, headers: response.headers, body: read }
}

/** Resolves when the stream is open: its first event is that it is. */
export async function listening(url: string, key: string): Promise<Socket> {
  const notifications = { resourcesListChanged: true }
  const message = JSON.stringify(modern('subscriptions/listen', { notifications }))
  const socket = await dialled(url)
  socket.on('error', () => undefined)
  socket.write(headOf(url, key, JSON.parse(message), Buffer.byteLength(message)) + message)
  let text = ''
  while (!text.includes('subscriptions/acknowledged')) {
    const [data] = (await once(socket, 'data')) as [Buffer]
    text += data.toString()
    assert.ok(text.startsWith('HTTP/1.1 200'), text)
  }
  return socket
}

/** The beginning of a request that is written by hand, for a body of this length. */
export function headOf(url: string, key: string, message: unknown, length: number): string {
  const headers = { host: new URL(url).host, 'content-length': String(length), ...headersFor(key, message) }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return ['POST /mcp HTTP/1.1', ...lines, '', ''].join('\r\n')
}

const VERSION = 'io.modelcontextprotocol/protocolVersion'
const ENVELOPE = {
  [VERSION]: '2026-07-28',
  'io.modelcontextprotocol/clientInfo': WHO,
  'io.modelcontextprotocol/clientCapabilities': {},
}
const BASE = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
