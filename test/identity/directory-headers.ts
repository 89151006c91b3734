import { createSigner, httpbis } from 'http-message-signatures'
import type { Signer } from './signer.ts'

export interface DirectoryWanted {
  /** With its port, where that is not the usual one. */
  readonly host: string
  readonly createdS: number
  readonly expiresS?: number | null
  readonly fields?: readonly string[]
  readonly tag?: string
  readonly keyId?: string
  readonly algorithm?: string
  /** Of the answer, beside those of the signature. */
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * The headers that a server of a key directory adds to its answer: a signature by each of these keys, for the requested
 * host. Made by an independent program.
 */
export async function directoryHeaders(
  signers: readonly Signer[],
  { host, createdS, expiresS = createdS + 300, fields = ['@authority;req'], ...more }: DirectoryWanted,
): Promise<Record<string, string>> {
  const request = { method: 'GET', url: `https://${host}${DIRECTORY}`, headers: { host } }
  let response = { status: 200, headers: { ...more.headers } as Record<string, string> }
  for (const [index, { algorithm, privateKey, key }] of signers.entries()) {
    const { tag = 'http-message-signatures-directory', keyId = key.thumbprint } = more
    const paramValues = {
      created: new Date(createdS * 1000),
      ...(expiresS !== null && { expires: new Date(expiresS * 1000) }),
      ...{ keyid: keyId, tag },
      ...(more.algorithm !== undefined && { alg: more.algorithm }),
    }
    const config = {
      key: createSigner(privateKey, algorithm),
      name: `sig${index + 1}`,
      fields: [...fields],
      params: Object.keys(paramValues),
      paramValues,
    }
    response = (await httpbis.signMessage(config, response, request)) as typeof response
  }
  return Object.fromEntries(
    Object.entries(response.headers).map(([name, value]) => [name.toLowerCase(), value]),
  )
}

const DIRECTORY = '/.well-known/http-message-signatures-directory'
