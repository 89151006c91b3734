import assert from 'node:assert/strict'
import { test } from 'tap'
import type { Exchange } from '../../src/proxy/connection/exchange.ts'
import { exchangeContract, plainFront } from './exchange-contract.ts'
import { answerText, type FrontPlan } from './front.ts'

exchangeContract(false)

test('what is broken behind a request does not take its answer away', async () => {
  const asked = Promise.withResolvers<Exchange>()
  const { front, peer } = await plain({ request: asked.resolve })
  peer.write(`${GET}GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n${GET}`)
  const exchange = await asked.promise
  await front.failed()
  answerText(exchange, 'fine')
  await peer.closed
  assert.match(
    peer.text,
    /^HTTP\/1.1 200 OK.*keep-alive.*\r\n\r\nfineHTTP\/1.1 400 Bad Request.*close\r\n\r\nBad Request\n$/s,
  )
  assert.deepEqual([front.exchanges.length, front.failures.length], [1, 1])
  await front.close()
})

test('a flood of requests behind one ends the connection', async () => {
  let gone = 0
  const { front, peer } = await plain({ request: (exchange) => (exchange.onGone = () => gone++) })
  peer.write(GET.repeat(3000))
  await peer.closed
  assert.deepEqual([front.exchanges.length, gone, front.failures[0]!.code], [1, 1, 'pipelined'])
  await front.close()
})

test('CONNECT behind a request leaves it its answer, however long', async () => {
  const text = 'x'.repeat(20_000)
  const { front, peer } = await plain({
    request(exchange) {
      exchange.answer(200, ['Content-Length', String(text.length * 100)], text.length * 100)
      let left = 100
      exchange.onDrain = () => {
        while (left-- > 0) if (!exchange.write(Buffer.from(text))) return
      }
      setImmediate(exchange.onDrain)
    },
  })
  peer.write(`${GET}CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n`)
  await peer.closed
  assert.match(peer.text, /x{2000000}HTTP\/1.1 501 Not Implemented/)
  await front.close()
})

function plain(plan: FrontPlan): ReturnType<typeof plainFront> {
  return plainFront({ ...plan, options: { fastLane: false } })
}

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
