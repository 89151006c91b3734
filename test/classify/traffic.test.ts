import assert from 'node:assert/strict'
import fc from 'fast-check'
import { test } from 'tap'
import { Traffic } from '../../src/classify/verdict/traffic.ts'

const HELLO = 'gs1-t13d1516h2-8daaf6152771-d8a2da3f94cd'

test('equal clients count as one, and any difference makes another', async () => {
  const traffic = new Traffic()
  const tally = traffic.of('192.0.2.1', HELLO, 'curl')
  assert.equal(traffic.of('192.0.2.1', HELLO, 'curl'), tally)
  const others = [
    traffic.of('192.0.2.2', HELLO, 'curl'),
    traffic.of('192.0.2.1', null, 'curl'),
    traffic.of('192.0.2.1', HELLO, 'got'),
    traffic.ofHello(HELLO),
  ]
  assert.equal(new Set([tally, ...others]).size, 5)
  assert.equal(traffic.ofHello(HELLO), others[3])
  assert.equal(traffic.size, 5)
})

test('who was seen lately is kept, however many others come', async () => {
  const traffic = new Traffic(100)
  const kept = traffic.of('192.0.2.1', HELLO, 'curl')
  const forgotten = traffic.of('192.0.2.2', HELLO, 'curl')
  for (let i = 0; i < 1000; i++) {
    traffic.of(`198.51.100.${i}`, HELLO, 'curl')
    if (i % 40 === 0) traffic.of('192.0.2.1', HELLO, 'curl')
  }
  assert.equal(traffic.of('192.0.2.1', HELLO, 'curl'), kept)
  assert.notEqual(traffic.of('192.0.2.2', HELLO, 'curl'), forgotten)
})

test('a returning client is counted once', async () => {
  const traffic = new Traffic(8)
  for (const network of ['a', 'b', 'c', 'd', 'e', 'a', 'b']) traffic.of(network, null, 'curl')
  assert.equal(traffic.size, 5)
})

test('whatever is made up, no more is kept than was allowed', async () => {
  const keys = fc.array(fc.tuple(fc.string(), fc.option(fc.string()), fc.string()), { maxLength: 300 })
  fc.assert(
    fc.property(
      keys,
      fc.integer({ min: 2, max: 40 }),
      fc.integer({ min: 2, max: 40 }),
      (all, clients, hellos) => {
        const traffic = new Traffic(clients, hellos)
        for (const [network, hello, claim] of all) {
          const tally = traffic.of(network, hello, claim)
          assert.equal(traffic.of(network, hello, claim), tally)
          if (hello !== null) assert.equal(traffic.ofHello(hello), traffic.ofHello(hello))
          assert.ok(traffic.size <= clients + hellos, `${traffic.size} of ${clients} and ${hellos}`)
        }
      },
    ),
  )
})
