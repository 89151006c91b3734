import assert from 'node:assert/strict'
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import {
  type PaymentAnswer,
  type PaymentClaim,
  type PaymentMessage,
  UNAVAILABLE,
} from '../../src/payment/claim.ts'
import type { ManageBus, ProxyBus } from '../../src/plane/bus.ts'
import type { Sighting, SightingId } from '../../src/plane/sighting.ts'
import type { SnapshotDocument } from '../../src/plane/snapshot.ts'

export interface BusUnderTest {
  readonly manage: ManageBus
  /** Whether what is sent is answered by who takes it; else something in between keeps it until then. */
  readonly isDirect: boolean
  /** One more proxy; `lose` is its connection breaking. */
  join(): Promise<{ readonly bus: ProxyBus; lose(): Promise<void> }>
  close(): Promise<void>
}

/** What any Bus must do. The test of each implementation calls this, and adds what is its own. */
export function busContract(
  name: string,
  open: () => Promise<BusUnderTest>,
  options: { readonly skip?: string | false } = {},
): void {
  test(
    `${name}: a Snapshot reaches every proxy, those there are and those that come later`,
    options,
    async () => {
      await using(open, async ({ manage, join }) => {
        const early = seen((await join()).bus)
        manage.publish(document(1))
        assert.deepEqual(await early.next(), document(1))
        const late = seen((await join()).bus)
        assert.deepEqual(await late.next(), document(1))
        manage.publish(document(2))
        assert.deepEqual([await early.next(), await late.next()], [document(2), document(2)])
      })
    },
  )

  test(`${name}: the numbers of Snapshots rise`, options, async () => {
    await using(open, async ({ manage, join }) => {
      const snapshots = seen((await join()).bus)
      for (let number = 1; number <= 50; number++) manage.publish(document(number * 2))
      const numbers: number[] = []
      while (numbers.at(-1) !== 100) numbers.push((await snapshots.next()).number)
      assert.deepEqual(
        numbers,
        numbers.toSorted((a, b) => a - b),
      )
      assert.throws(() => manage.publish(document(100)))
    })
  })

  test(`${name}: a late subscriber gets the newest Snapshot`, options, async () => {
    await using(open, async ({ manage, join, isDirect }) => {
      const { bus } = await join()
      manage.publish(document(1))
      manage.publish(document(2))
      await settled(bus)
      const snapshots = seen(bus)
      let newest = await snapshots.next()
      while (!isDirect && newest.number < 2) newest = await snapshots.next()
      assert.deepEqual(newest, document(2))
    })
  })

  test(`${name}: Sightings arrive as they were, in the order sent`, options, async () => {
    await using(open, async ({ manage, join }) => {
      const arrived: Sighting[] = []
      manage.onSightings((batch) => void arrived.push(...batch))
      const [one, other] = [(await join()).bus, (await join()).bus]
      const sent = Array.from({ length: 40 }, (_, number) => sighting(number))
      await Promise.all(sent.map((each, number) => (number % 2 === 0 ? one : other).sendSightings([each])))
      await until(() => arrived.length === 40)
      for (const parity of [0, 1]) {
        const ofOne = (list: readonly Sighting[]) => list.filter(({ snapshot }) => snapshot % 2 === parity)
        assert.deepEqual(ofOne(arrived), ofOne(sent))
      }
    })
  })

  test(
    `${name}: a batch that is not taken comes again, and one that is taken does not`,
    options,
    async () => {
      await using(open, async ({ manage, join, isDirect }) => {
        let refuses = true
        const arrived: number[] = []
        manage.onSightings(async (batch) => {
          await turn()
          if (refuses) throw new Error('the store is locked')
          arrived.push(...batch.map(({ snapshot }) => snapshot))
        })
        const { bus } = await join()
        if (isDirect) await assert.rejects(bus.sendSightings([sighting(1)]), { code: 'BUS_REFUSED' })
        else await bus.sendSightings([sighting(1)])
        await wait(50)
        refuses = false
        if (isDirect) await bus.sendSightings([sighting(1)])
        await until(() => arrived.length > 0)
        await bus.sendSightings([sighting(2)])
        await until(() => arrived.length > 1)
        assert.deepEqual(arrived, [1, 2])
      })
    },
  )

  test(`${name}: a payment is answered by the management plane, whatever the answer`, options, async () => {
    await using(open, async ({ manage, join }) => {
      const { bus } = await join()
      const heard: PaymentMessage[] = []
      const answers: PaymentAnswer[] = [
        { kind: 'paid', id: 'pay_1', receipt: RECEIPT, passUntilMs: 7 },
        { kind: 'paid', id: 'pay_2', receipt: null, passUntilMs: 0 },
        { kind: 'refused', why: 'expired' },
        { kind: 'pending', retryMs: 1_000 },
        { kind: 'pass', untilMs: 0 },
        { kind: 'noted' },
        { kind: 'unavailable' },
      ]
      const messages: PaymentMessage[] = [
        CLAIM,
        { ...CLAIM, payment: null, dayMax: 5, license: 'https://a.example/' },
        { kind: 'pass', app: 'shop', rule: 'r', key: 'k' },
        { kind: 'use', id: 'pay_1', isServed: true },
      ]
      await settled(bus)
      manage.onPayment(async (message) => {
        heard.push(message)
        return answers[(heard.length - 1) % answers.length]!
      })
      for (const [i, answer] of answers.entries())
        assert.deepEqual(await bus.pay(messages[i % messages.length]!), answer)
      assert.deepEqual(heard.slice(0, messages.length), messages)
    })
  })

  test(`${name}: payments are unavailable without a ledger, and when the line breaks`, options, async () => {
    await using(open, async ({ manage, join }) => {
      const lost = await join()
      assert.deepEqual(await lost.bus.pay(CLAIM), UNAVAILABLE)
      manage.onPayment(() => new Promise(() => undefined))
      const underWay = lost.bus.pay(CLAIM)
      await lost.lose()
      assert.deepEqual(await underWay, UNAVAILABLE)
      assert.deepEqual(await lost.bus.pay(CLAIM), UNAVAILABLE)
    })
  })

  test(`${name}: batches are accepted without a consumer`, options, async () => {
    await using(open, async ({ join }) => {
      const { bus } = await join()
      await assert.doesNotReject(bus.sendSightings([sighting(1)]))
    })
  })

  test(`${name}: a lost connection rejects current and later calls; others go on`, options, async () => {
    await using(open, async ({ manage, join, isDirect }) => {
      const [lost, other] = [await join(), await join()]
      manage.onSightings(() => new Promise(() => undefined))
      const underWay = lost.bus.sendSightings([sighting(1)])
      const over = isDirect ? assert.rejects(underWay, { code: 'BUS_CLOSED' }) : underWay
      if (!isDirect) await over
      await lost.lose()
      await over
      await assert.rejects(lost.bus.sendSightings([sighting(2)]), { code: 'BUS_CLOSED' })
      manage.onSightings(() => undefined)
      await other.bus.sendSightings([sighting(3)])
      manage.publish(document(1))
      assert.deepEqual(await seen(other.bus).next(), document(1))
    })
  })

  test(`${name}: after close nothing is sent, and nothing arrives`, options, async () => {
    await using(open, async ({ manage, join }) => {
      const { bus } = await join()
      const arrived: SnapshotDocument[] = []
      bus.onSnapshot((each) => arrived.push(each))
      bus.close()
      await assert.rejects(bus.sendSightings([sighting(1)]), { code: 'BUS_CLOSED' })
      const other = (await join()).bus
      manage.publish(document(1))
      await seen(other).next()
      assert.deepEqual(arrived, [])
    })
  })
}

export function sighting(number: number): Sighting {
  return {
    id: `0190a3b2-0000-7000-8000-${String(number).padStart(12, '0')}` as SightingId,
    seenAtMs: 1_800_000_000_000 + number,
    proxy: 'one',
    address: '192.0.2.1',
    method: 'GET',
    host: 'app.example.test',
    app: 'shop',
    path: '/ä\u0000',
    userAgent: null,
    ja4: 't13d1516h2_8daaf6152771_e5627efa2ab1',
    ja4Source: 'own',
    noHello: null,
    stable: null,
    ja4s: null,
    ja4h: null,
    ja4x: null,
    http2: null,
    verdict: 'unknown',
    agent: null,
    category: null,
    purposes: [],
    software: 'curl',
    confidence: 0.25,
    nameConfidence: 0,
    verified: null,
    signer: null,
    signatureFault: null,
    allegedSigner: null,
    requestKind: 0,
    program: 0,
    headerOrder: 0,
    target: 0,
    campaign: null,
    visitor: null,
    sampled: null,
    mcpMethod: null,
    mcpTool: null,
    key: null,
    evidence: ['names-tool'],
    rule: 'otherwise',
    layer: 'last',
    action: 'tag',
    dryRun: false,
    done: 'tag',
    limited: false,
    forged: ['x-agent-name'],
    snapshot: number,
  }
}

export function document(number: number): SnapshotDocument {
  return {
    number,
    hash: 'ab'.repeat(32),
    madeAtMs: number * 1000,
    policy: { rules: [], otherwise: 'tag' },
    signatures: null,
  }
}

async function using(
  open: () => Promise<BusUnderTest>,
  run: (bus: BusUnderTest) => Promise<void>,
): Promise<void> {
  const bus = await open()
  try {
    await run(bus)
  } finally {
    await bus.close()
  }
}

/** As long as it takes: the test's own time limit is the end of it. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await wait(5)
}

/** What was sent before has arrived once this answer has. */
async function settled(bus: ProxyBus): Promise<void> {
  await bus.sendSightings([sighting(0)])
}

function seen(bus: ProxyBus): { next(): Promise<SnapshotDocument> } {
  const arrived: SnapshotDocument[] = []
  let waiting: (() => void) | null = null
  bus.onSnapshot((each) => {
    arrived.push(each)
    waiting?.()
  })
  return {
    async next() {
      if (arrived.length === 0) await new Promise<void>((resolve) => (waiting = resolve))
      return arrived.shift()!
    },
  }
}

const RECEIPT = { success: true, transaction: '0xfeed', network: 'eip155:1', payer: '0x1' } as const
const CLAIM: PaymentClaim = {
  ...{ kind: 'claim', app: 'shop', rule: 'r', decisionId: 'd', payment: 'AAAA', url: 'https://a.example/' },
  ...{ agent: 'gptbot', key: 'k', host: 'a.example', path: '/', price: '0.01', currency: 'USD' },
  ...{ passMs: 0, dayMax: null, purposes: ['training'], license: null },
}
