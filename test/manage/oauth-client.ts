import assert from 'node:assert/strict'
import type { TestManagement } from './management.ts'

/** A client, as the API gave it. */
export interface MadeClient {
  readonly client_id: string
  readonly client_secret?: string
}

/** One that gets tokens for itself, unless `body` says otherwise. */
export async function clientFor(manage: TestManagement, body: Record<string, unknown>): Promise<MadeClient> {
  const wanted = { name: 'test', grant_types: ['client_credentials'], scopes: ['read', 'detect'], ...body }
  const made = await manage.ask('POST', '/v1/clients', wanted)
  assert.equal(made.status, 201, JSON.stringify(made.body))
  return made.body as MadeClient
}

export function basic({ client_id, client_secret }: MadeClient): Record<string, string> {
  const text = `${encodeURIComponent(client_id)}:${encodeURIComponent(client_secret ?? '')}`
  return { authorization: `Basic ${Buffer.from(text).toString('base64')}` }
}

export async function tokenFor(
  manage: TestManagement,
  client: MadeClient,
  form: Record<string, string> = {},
): Promise<string> {
  const asked = { grant_type: 'client_credentials', ...form }
  const { status, body } = await postForm(manage.url, '/oauth/token', asked, basic(client))
  assert.equal(status, 200, JSON.stringify(body))
  return body.access_token
}

export async function postForm(
  url: string,
  path: string,
  form: Record<string, string>,
  headers: Record<string, string> = {},
) {
  const response = await fetch(url + path, { method: 'POST', body: new URLSearchParams(form), headers })
  const text = await response.text()
  const isJson = (response.headers.get('content-type') ?? '').includes('json')
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
  const body: any = isJson ? JSON.parse(text) : null
  return { status: response.status, headers: response.headers, text, body }
}
