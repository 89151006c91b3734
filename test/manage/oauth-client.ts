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

/** Where somebody is led who is to consent to this. */
export function codeUrl({ url }: TestManagement, { client_id }: MadeClient, scope: string): string {
  const query = new URLSearchParams({
    ...{ response_type: 'code', client_id, redirect_uri: CALLBACK, scope },
    ...{ code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM', code_challenge_method: 'S256' },
  })
  return `${url}/oauth/authorize?${query}`
}

/** For the code that the browser was led `away` with. */
export async function tokensFor(manage: TestManagement, client: MadeClient, away: URL) {
  const form = {
    ...{ grant_type: 'authorization_code', code: away.searchParams.get('code') ?? '' },
    ...{ redirect_uri: CALLBACK, code_verifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk' },
  }
  const { status, text, body } = await postForm(manage.url, '/oauth/token', form, basic(client))
  assert.equal(status, 200, text)
  return body as { readonly access_token: string; readonly refresh_token: string }
}

export const CALLBACK = 'https://app.example/callback'
