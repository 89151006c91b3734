import { randomBytes } from 'node:crypto'
import { contentDigest, type Signer, signed, type Wanted } from '../identity/signer.ts'

/** What an agent may say otherwise than it should. */
export interface AgentRequest extends Partial<Wanted> {
  readonly method?: string
  readonly path?: string
  /** Whom it says to be; `null`: nobody. */
  readonly agent: string | null
  /** Sent as JSON, and covered. */
  readonly body?: unknown
  /** Changes what is sent after it was signed. */
  readonly change?: (sent: Sent) => Sent
}

export interface Sent {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
}

/** What an agent sends: signed as Web Bot Auth has it, by a program that is none of ours. */
export async function agentRequest(gate: string, signer: Signer, asked: AgentRequest): Promise<Sent> {
  const { path = '/v1/agents', agent, body, change = (sent) => sent, method = 'GET', ...wanted } = asked
  const text = body === undefined ? null : JSON.stringify(body)
  const headers = {
    host: new URL(gate).host,
    ...(agent !== null && { 'Signature-Agent': `sig1="${agent}"` }),
    ...(text !== null && { 'Content-Type': 'application/json', 'Content-Digest': contentDigest(text) }),
  }
  const fields = [
    ...['@method', '@authority', '@path'],
    ...(agent === null ? [] : ['signature-agent;key="sig1"']),
    ...(text === null ? [] : ['content-digest']),
  ]
  const createdS = Math.floor(Date.now() / 1000)
  const nonce = randomBytes(16).toString('base64url')
  const all = { fields, tag: 'web-bot-auth', createdS, expiresS: createdS + 60, nonce, ...wanted }
  const request = { method, url: gate + path, headers }
  const sent = (await signed(signer, request, all)) as Record<string, string>
  return change({ url: gate + path, method, headers: sent, body: text })
}

export async function send({ url, headers, ...request }: Sent) {
  const { host: _host, ...others } = headers
  const response = await fetch(url, { ...request, headers: others })
  const text = await response.text()
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
  const body = (text === '' ? null : JSON.parse(text)) as any
  return { status: response.status, headers: response.headers, body }
}
