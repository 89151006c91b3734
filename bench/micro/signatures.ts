import { constants, type KeyObject, verify } from 'node:crypto'
import { NO_PROOFS } from '../../src/classify/verdict/proof.ts'
import { FailureBudget } from '../../src/identity/verify/failure-budget.ts'
import { KeyBook } from '../../src/identity/keys/key-book.ts'
import { type SentRequest, SignatureCheck } from '../../src/identity/verify/signature-check.ts'
import type { SignatureAlgorithm } from '../../src/identity/signature/signature-key.ts'
import { readBotSignature } from '../../src/identity/verify/web-bot-auth.ts'
import type { Connection } from '../../src/proxy/connection/connection.ts'
import { AddressSet } from '../../src/wire/ip-address.ts'
import { HeaderRules } from '../../src/proxy/connection/header-rules.ts'
import type { ReceivedHead } from '../../src/proxy/connection/received-head.ts'
import { Prover } from '../../src/proxy/request/prover.ts'
import { ServedHosts } from '../../src/proxy/connection/served-hosts.ts'
import { newSigner, rawHeadersOf, signed } from '../../test/identity/signer.ts'
import { browserHeaders } from './browser-headers.ts'

/**
 * `npm run bench:signatures`: the cost of finding the signer of a request, beside the bare node:crypto check of the
 * same bytes by the same key, and what all others pay for being asked. Both take turns in each round; names and values are
 * new strings for each request, as they are when they come from a socket. The figure is the best round.
 */
async function main(): Promise<void> {
  process.stdout.write(`${'µs'.padStart(WIDTH + 8)}${'x bare'.padStart(10)}\n`)
  for (const algorithm of ALGORITHMS) await compare(algorithm)
  compareUnsigned()
}

async function compare(algorithm: SignatureAlgorithm): Promise<void> {
  const signer = newSigner(algorithm)
  const keys = new KeyBook()
  const farMs = NOW_MS + 3_600_000
  const { thumbprint, key } = signer.key
  keys.take({
    ...{ kind: 'keys', agentId: AGENT, keys: [signer.jwk as Record<string, string>], why: null },
    ...{ card: null, registries: [], ranges: null },
    ...{ askAgainMs: farMs, freshUntilMs: farMs, untilMs: farMs },
  })
  const check = new SignatureCheck(
    { allowPrivate: false, needsNonce: false, readsSignatureKey: false },
    keys,
    new FailureBudget(),
  )
  const requests: SentRequest[] = []
  for (let i = 0; i < RUNS; i++) requests.push(askedWith(await headersBy(signer, i)))
  const bare = requests.map((request) => bareCheck(algorithm, key, request))
  const all = () => {
    for (const request of requests)
      if (check.check(request, NOW_MS)?.kind !== 'use') throw new Error(`${thumbprint} is not right`)
  }
  const floor = () => {
    for (const each of bare) if (!each()) throw new Error(`${thumbprint} is not right`)
  }
  const [allNs, floorNs] = alternating(all, floor)
  say(`${algorithm}: node:crypto`, floorNs, floorNs)
  say(`${algorithm}: all of it`, allNs, floorNs)
}

/** A browser's request, looked at for signatures, and not. */
function compareUnsigned(): void {
  const prover = new Prover(
    {
      ...{
        allowPrivate: false,
        needsNonce: false,
        readsSignatureKey: false,
        isPlaceAsked: true,
        areNetworksKnown: false,
      },
      ...{ isSignatureChecked: true, areStrangersAsked: true, agents: [] },
    },
    {
      investigator: { ask: () => undefined, claim: async () => true, onFinding: () => undefined },
      hosts: new ServedHosts([], { covers: () => true }),
      trusted: AddressSet.parse([])!,
      rules: new HeaderRules({
        oddNames: 'drop',
        untrusted: [],
        trusted: [],
        ja4Header: 'x-ja4-fingerprint',
      }),
      clock: { nowMs: NOW_MS },
      metrics: { signatureFound: () => undefined },
    },
  )
  const connection = { address: '192.0.2.7', isTrusted: false } as Connection
  const heads = Array.from({ length: RUNS * 10 }, (): ReceivedHead => {
    const rawHeaders = BROWSER.map(newString)
    return { method: 'GET', target: '/cart', version: '11', rawHeaders, hasOddNames: false }
  })
  let sum = 0
  const with_ = () => {
    for (const head of heads)
      if (prover.prove(connection, head, 'gate.example', 0) !== NO_PROOFS) sum += head.rawHeaders.length
  }
  const without = () => {
    for (const head of heads) sum += head.rawHeaders.length
  }
  const [one, other] = alternating(with_, without)
  prover.close()
  const extraNs = (one - other) / 10
  process.stdout.write(
    `${`not signed, ${BROWSER.length / 2} headers`.padEnd(WIDTH)}${(extraNs / 1000).toFixed(3).padStart(8)}\n`,
  )
  if (sum === 0) throw new Error('nothing was done')
}

/** Nanoseconds of a request, of each. */
function alternating(one: () => void, other: () => void): readonly [number, number] {
  const best: [number, number] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let round = 0; round < ROUNDS; round++)
    for (const [i, run] of [one, other].entries()) {
      const from = process.hrtime.bigint()
      run()
      best[i] = Math.min(best[i]!, Number(process.hrtime.bigint() - from) / RUNS)
    }
  return best
}

async function headersBy(signer: ReturnType<typeof newSigner>, i: number): Promise<readonly string[]> {
  const headers = { ...CLIENT, 'Signature-Agent': `sig1="${AGENT}"` }
  const request = { method: 'GET', url: 'https://gate.example/cart?id=7', headers }
  const times = { createdS: NOW_MS / 1000, expiresS: NOW_MS / 1000 + 300 }
  const nonce = Buffer.alloc(64, `nonce ${i} `).toString('base64')
  const fields = ['@authority', 'signature-agent;key="sig1"']
  return rawHeadersOf(await signed(signer, request, { fields, tag: 'web-bot-auth', nonce, ...times }))
}

function askedWith(rawHeaders: readonly string[]): SentRequest {
  return {
    ...{ method: 'GET', base: 'https://gate.example', target: '/cart?id=7', host: 'ours' },
    ...{ address: '192.0.2.7', network: '192.0.2.7', rawHeaders: rawHeaders.map(newString) },
  }
}

function bareCheck(algorithm: SignatureAlgorithm, key: KeyObject, request: SentRequest): () => boolean {
  const read = readBotSignature(request, { allowPrivate: false }, NOW_MS)
  if (read.kind !== 'signature') throw new Error(read.fault)
  const { bytes } = read.signature
  const base = Buffer.from(read.signature.base, 'latin1')
  switch (algorithm) {
    case 'ed25519':
      return () => verify(null, base, key, bytes)
    case 'ecdsa-p256-sha256':
      return () => verify('sha256', base, { key, dsaEncoding: 'ieee-p1363' }, bytes)
    case 'ecdsa-p384-sha384':
      return () => verify('sha384', base, { key, dsaEncoding: 'ieee-p1363' }, bytes)
    case 'rsa-pss-sha512':
      return () => verify('sha512', base, { key, ...PSS }, bytes)
  }
}

function say(name: string, ns: number, floorNs: number): void {
  const figures = [(ns / 1000).toFixed(1).padStart(8), (ns / floorNs).toFixed(2).padStart(10)]
  process.stdout.write(`${name.padEnd(WIDTH)}${figures.join('')}\n`)
}

function newString(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}

const ALGORITHMS = ['ed25519', 'ecdsa-p256-sha256', 'ecdsa-p384-sha384', 'rsa-pss-sha512'] as const
const AGENT = 'https://agent.example'
const NOW_MS = 1_795_424_600_000
const RUNS = 100
const ROUNDS = 300
const WIDTH = 34
const PSS = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_AUTO }
const CLIENT = {
  host: 'gate.example',
  'user-agent': 'Mozilla/5.0 (compatible; ExampleAgent/1.0; +https://agent.example/)',
  accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'accept-encoding': 'gzip, deflate, br, zstd',
  'accept-language': 'en-US,en;q=0.9',
}
const BROWSER = browserHeaders('gate.example')

await main()
