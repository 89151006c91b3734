import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import type { X402Requirements } from '../../src/payment/x402.ts'
import type { X402Terms } from '../../src/payment/payment-terms.ts'

/** An agent with money. Its signatures are made up: only the facilitator of the test can check them. */
export class Payer {
  readonly scheme = 'exact'
  readonly address: string
  #nonces = 0

  constructor(name: string) {
    this.address = `0x${digest(name).slice(0, 40)}`
  }

  async createPaymentPayload(x402Version: number, wanted: Wanted) {
    return { x402Version, payload: this.pay(wanted) }
  }

  pay({ payTo, amount, maxTimeoutSeconds }: Wanted, nowS = Math.floor(Date.now() / 1_000)) {
    const authorization = {
      from: this.address,
      to: payTo,
      value: amount,
      validAfter: String(nowS - 60),
      validBefore: String(nowS + maxTimeoutSeconds),
      nonce: `0x${digest(`${this.address} ${Date.now()} ${this.#nonces++}`)}`,
    }
    return { signature: signatureOf(authorization), authorization }
  }
}

/** Of an offer. */
type Wanted = Pick<X402Requirements, 'payTo' | 'amount' | 'maxTimeoutSeconds'>

export interface Transfer {
  readonly from: string
  readonly to: string
  readonly value: string
  readonly nonce: string
}

/** What it does instead of its work. */
export type Mood = 'honest' | 'broken' | 'silent' | 'lying' | 'endless' | 'forgetful'

/** A facilitator on loopback that moves the money of the test. */
export class TestFacilitator {
  readonly transfers: Transfer[] = []
  readonly asked: string[] = []
  readonly poor = new Set<string>()
  mood: Mood = 'honest'
  /** Called before it settles. */
  beforeSettling: () => Promise<void> = async () => {}
  /** Called after it has settled, before it answers. */
  afterSettling: () => Promise<void> = async () => {}
  readonly #server = createServer((request, response) => void this.#answer(request, response))

  static async start(t: Test): Promise<TestFacilitator> {
    const facilitator = new TestFacilitator()
    facilitator.#server.listen(0, '127.0.0.1')
    await once(facilitator.#server, 'listening')
    t.teardown(() => {
      facilitator.#server.close()
      facilitator.#server.closeAllConnections()
    })
    return facilitator
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/x402`
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const what = request.url!.split('/').at(-1)!
    this.asked.push(what)
    if (this.mood === 'silent') return
    if (this.mood === 'broken') return void response.writeHead(500).end('no')
    if (this.mood === 'endless') return void response.end('x'.repeat(1_000_000))
    const { paymentPayload, paymentRequirements } = JSON.parse(Buffer.concat(pieces).toString())
    const { signature, authorization } = paymentPayload.payload
    const { from, to, value, nonce } = authorization
    const answer = (body: object) => {
      response.setHeader('Content-Type', 'application/json')
      response.end(JSON.stringify(body))
    }
    const { network } = paymentRequirements
    if (this.mood === 'lying') {
      const payer = '0x0000000000000000000000000000000000000001'
      return answer({ isValid: true, success: true, transaction: '0xfeed', network, payer })
    }
    const isUsed = this.transfers.some((each) => each.from === from && each.nonce === nonce)
    const why = this.poor.has(from)
      ? 'insufficient_funds'
      : signature !== signatureOf(authorization)
        ? 'invalid_exact_evm_signature'
        : isUsed
          ? 'invalid_exact_evm_nonce_already_used'
          : null
    if (what === 'verify')
      return answer(why === null ? { isValid: true, payer: from } : { isValid: false, invalidReason: why })
    await this.beforeSettling()
    if (why !== null) return answer({ success: false, errorReason: why, transaction: '', network })
    this.transfers.push({ from, to, value, nonce })
    await this.afterSettling()
    if (this.mood === 'forgetful') return void response.destroy()
    answer({ success: true, transaction: `0x${digest(nonce)}`, network, payer: from })
  }
}

export const X402_TERMS: X402Terms = {
  network: 'eip155:84532',
  asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
  assetName: 'USDC',
  assetVersion: '2',
  decimals: 6,
  currency: 'USD',
  payTo: `0x${'ab'.repeat(20)}`,
  validS: 60,
}

function signatureOf(authorization: object): string {
  const text = JSON.stringify(Object.entries(authorization).sort())
  return `0x${createHash('sha512').update(`payer ${text}`).digest('hex')}00`
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
