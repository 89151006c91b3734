import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { Test } from 'tap'

/** An app that can be held up. */
export interface Holder {
  readonly url: string
  /** Without those of witnesses. */
  asked: number
  /** Until so many more have been asked. */
  isAsked(count: number): Promise<void>
  /** Until no request is under way, nor comes any more; fails when that does not come to be. */
  settles(): Promise<void>
}

/**
 * Answers `/hold` never, `/large` at length, `/early` before it has read the request, `/events` without an end, and does
 * not read what is sent to `/unread`. All else is `ok`.
 */
export async function startHolder(t: Test): Promise<Holder> {
  let open = 0
  let total = 0
  const large = Buffer.alloc(LARGE_BYTES, 'x')
  const server = createServer((request, response) => {
    if (request.url === '/witness') return void response.end('ok')
    holder.asked++
    total++
    if (request.url === '/unread') return void request.pause() // nor does it see the end of it
    open++
    response.on('close', () => open--)
    request.resume()
    if (request.url === '/large') response.end(large)
    else if (request.url === '/early') response.end('ok')
    else if (request.url === '/events') response.write('data: 1\n\n')
    else if (request.url !== '/hold') request.on('end', () => response.end('ok'))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  let expected = 0
  const until = async (isSo: () => boolean, what: string) => {
    for (let left = 1000; !isSo(); left--) {
      if (left === 0) throw new Error(`the app has ${open} requests under way, of ${total}: ${what}`)
      await wait(10)
    }
  }
  const holder: Holder = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: 0,
    isAsked(count) {
      expected += count
      return until(() => total >= expected, `it waits for ${expected}`)
    },
    async settles() {
      for (let before = -1; before !== total; await wait(20)) {
        before = total
        await until(() => open === 0, 'it waits for their end')
      }
    },
  }
  return holder
}

const LARGE_BYTES = 4_000_000
