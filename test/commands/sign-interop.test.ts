import assert from 'node:assert/strict'
import { createPrivateKey, createPublicKey, type JsonWebKey, webcrypto } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSignature, type Verifier, verifySignature, webcrypto as messageSig } from 'http-message-sig'
import { createSigner, createVerifier, httpbis } from 'http-message-signatures'
import { type Test, test } from 'tap'
import { signatureHeaders, verify as verifyByWebBotAuth } from 'web-bot-auth'
import { signerFromJWK, verifierFromJWK } from 'web-bot-auth/crypto'
import { runCli } from '../../src/commands/cli.ts'
import { COMMANDS } from '../../src/commands/commands.ts'
import { directoryHeaders, directoryText } from '../../src/identity/keys/own-directory.ts'
import { readSigningKeys, SIGNING_ALGORITHMS } from '../../src/identity/keys/signing-key.ts'
import { temporaryFolder } from '../e2e/programs.ts'
import { memoryIo } from './memory-io.ts'

/** Against programs that others wrote, in both directions. */
const URL_ASKED = 'https://gate.example/a?b=c'
const AGENT = 'https://agent.example'
/** RFC 9421 has them by these names. */
const WEB_CRYPTO = {
  ed25519: { name: 'Ed25519' },
  'ecdsa-p256-sha256': { name: 'ECDSA', namedCurve: 'P-256' },
  'rsa-pss-sha512': { name: 'RSA-PSS', hash: 'SHA-512' },
} as const
type Algorithm = keyof typeof WEB_CRYPTO
type Headers = Readonly<Record<string, string>>

/** Rejects where they say that it is not signed by this key. */
const VERIFIERS: Readonly<
  Record<string, (headers: Headers, algorithm: Algorithm, jwk: JsonWebKey) => Promise<void>>
> = {
  'web-bot-auth 0.1.3': async (headers, _algorithm, jwk) =>
    verifyByWebBotAuth(new Request(URL_ASKED, { headers }), await verifierFromJWK(jwk as never)),
  'http-message-signatures 1.0.6': async (headers, algorithm, jwk) => {
    const key = createPublicKey({ key: jwk, format: 'jwk' })
    const isRight = await httpbis.verifyMessage(
      {
        keyLookup: async () => ({ id: 'k', algs: [algorithm], verify: createVerifier(key, algorithm) }),
        requiredParams: ['created', 'expires', 'keyid', 'tag'],
      },
      { method: 'GET', url: URL_ASKED, headers },
    )
    assert.equal(isRight, true)
  },
  'http-message-sig 0.3.0': async (headers, algorithm, jwk) => {
    const fields = Object.entries(headers).map(([name, value]) => ({ name, value }))
    const message = { kind: 'request', method: 'GET', targetUri: URL_ASKED, fields } as const
    await verifySignature(message, {
      policy: { algorithms: [algorithm], requiredComponents: ['@authority'], requiredParameters: ['tag'] },
      resolveVerifier: () => messageSigVerifier(algorithm, jwk),
    })
  },
}

/** Those of web-bot-auth 0.1.3: the bare string alone, and no ECDSA. */
const OLDER = 'web-bot-auth 0.1.3'

for (const [name, isVerified] of Object.entries(VERIFIERS))
  test(`what "sign request" makes, ${name} verifies, and nothing else`, async (t) => {
    for (const algorithm of SIGNING_ALGORITHMS)
      for (const form of ['dictionary', 'string'] as const) {
        if (name === OLDER && (form === 'dictionary' || algorithm === 'ecdsa-p256-sha256')) continue
        const { jwk, sign } = await agent(t, algorithm)
        const headers = await sign('--form', form)
        await isVerified(headers, algorithm, jwk)
        const other = { ...headers, 'Signature-Agent': headers['Signature-Agent']!.replace('agent', 'other') }
        await assert.rejects(isVerified(other, algorithm, jwk), `${algorithm} ${form}`)
      }
  })

const SIGNERS: Readonly<Record<string, (jwk: JsonWebKey, thumbprint: string) => Promise<Headers>>> = {
  [OLDER]: async (jwk) => {
    const own = { 'Signature-Agent': `"${AGENT}"` }
    const signer = await signerFromJWK(jwk as never)
    const made = await signatureHeaders(new Request(URL_ASKED, { headers: own }), signer, times())
    return { ...own, Signature: made.Signature, 'Signature-Input': made['Signature-Input'] }
  },
  'http-message-signatures 1.0.6': async (jwk, keyid) => {
    const config = {
      key: createSigner(createPrivateKey({ key: jwk, format: 'jwk' }), 'ed25519'),
      name: 'sig1',
      fields: ['@authority', '@method', 'signature-agent;key="sig1"'],
      params: ['created', 'expires', 'keyid', 'tag', 'nonce'],
      paramValues: { ...times(), keyid, tag: 'web-bot-auth', nonce: crypto.randomUUID() },
    }
    const headers = { 'Signature-Agent': `sig1="${AGENT}"` }
    return (await httpbis.signMessage(config, { method: 'GET', url: URL_ASKED, headers })).headers as Headers
  },
  'http-message-sig 0.3.0': async (jwk, keyid) => {
    const own = { 'Signature-Agent': `sig1="${AGENT}"` }
    const key = await webcrypto.subtle.importKey('jwk', jwk as never, WEB_CRYPTO.ed25519, false, ['sign'])
    const [created, expires] = Object.values(times()).map((at) => Math.floor(at.getTime() / 1_000)) as [
      number,
      number,
    ]
    const { signature, signatureInput } = await createSignature(new Request(URL_ASKED, { headers: own }), {
      label: 'sig1',
      components: ['@authority', '@target-uri', { name: 'signature-agent', parameters: { key: 'sig1' } }],
      parameters: { created, expires, keyid, tag: 'web-bot-auth' },
      signer: messageSig.signer(key as never),
    })
    return { ...own, Signature: signature, 'Signature-Input': signatureInput }
  },
}

for (const [name, signed] of Object.entries(SIGNERS))
  test(`what ${name} signs, "verify" verifies, and nothing else`, async (t) => {
    const { directory, privateJwk, thumbprint } = await agent(t, 'ed25519')
    const headers = await signed(privateJwk, thumbprint)
    const verify = async (request: object) =>
      run(['verify', '-', '--directory', directory], JSON.stringify(request))
    const right = await verify({ method: 'GET', url: URL_ASKED, headers })
    assert.equal(right.code, 0, right.out)
    assert.match(right.out, /\nproven: https:\/\/agent\.example\n$/)
    const wrong = await verify({ method: 'GET', url: URL_ASKED.replace('gate', 'late'), headers })
    assert.deepEqual([wrong.code, /^NO +signature /m.test(wrong.out)], [1, true], wrong.out)
  })

test('a directory that we sign, others verify', async (t) => {
  const { file, jwk } = await agent(t, 'ecdsa-p256-sha256')
  const keys = readSigningKeys(readFileSync(file, 'utf8'))
  const fields = Object.entries(directoryHeaders(keys, 'agent.example', Math.floor(Date.now() / 1_000)))
  const verifiedAt = (host: string) =>
    verifySignature(
      {
        ...{ kind: 'response', status: 200, fields: fields.map(([name, value]) => ({ name, value })) },
        request: { kind: 'request', method: 'GET', targetUri: `https://${host}/`, fields: [] },
      },
      {
        policy: {
          algorithms: ['ecdsa-p256-sha256'],
          requiredComponents: [{ name: '@authority', parameters: { req: true } }, 'content-digest'],
          requiredParameters: ['created', 'expires', 'keyid', 'tag'],
        },
        resolveVerifier: () => messageSigVerifier('ecdsa-p256-sha256', jwk),
      },
    )
  const { parameters } = await verifiedAt('agent.example')
  assert.equal(parameters.tag, 'http-message-signatures-directory')
  await assert.rejects(verifiedAt('other.example'))
  assert.deepEqual(JSON.parse(directoryText(keys)).keys.length, 1)
})

async function messageSigVerifier(algorithm: Algorithm, jwk: JsonWebKey): Promise<Verifier> {
  const { kid: _kid, alg: _alg, use: _use, ...bare } = jwk
  const key = await webcrypto.subtle.importKey('jwk', bare as never, WEB_CRYPTO[algorithm], false, ['verify'])
  if (algorithm !== 'ecdsa-p256-sha256') return messageSig.verifier(key as never)
  // It makes the base of such a signature, and leaves the check to the caller.
  const how = { name: 'ECDSA', hash: 'SHA-256' }
  return {
    algorithm,
    verify: (data, bytes) => webcrypto.subtle.verify(how, key, bytes as never, data as never),
  }
}

function times() {
  const created = new Date()
  return { created, expires: new Date(created.getTime() + 300_000) }
}

async function agent(t: Test, algorithm: Algorithm) {
  const folder = temporaryFolder(t)
  const file = join(folder, 'agent.jwk')
  const thumbprint = (await run(['sign', 'key', file, '--algorithm', algorithm])).out.trim()
  const directory = join(folder, 'directory.json')
  writeFileSync(directory, (await run(['sign', 'directory', '--key', file])).out)
  const jwk = JSON.parse(readFileSync(directory, 'utf8')).keys[0] as JsonWebKey
  const privateJwk = JSON.parse(readFileSync(file, 'utf8')).keys[0] as JsonWebKey
  const sign = async (...more: readonly string[]): Promise<Headers> => {
    const given = ['sign', 'request', URL_ASKED, '--key', file, '--agent', AGENT, '--as', 'json', ...more]
    return Object.fromEntries(JSON.parse((await run(given)).out).headers)
  }
  return { file, thumbprint, directory, jwk, privateJwk, sign }
}

async function run(argv: readonly string[], stdin = '') {
  const io = memoryIo(stdin)
  const code = await runCli(COMMANDS, argv, io)
  return { code, out: io.out, err: io.err }
}
