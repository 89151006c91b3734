import type net from 'node:net'
import { type Upstream, upstream } from './upstream-fixture.ts'

/** An app that keeps every byte it is sent, and answers by what it is asked for. */
export interface LaneApp extends Upstream {
  /** What has come since it forgot. */
  readonly received: string
  forget(): void
}

export async function laneApp(): Promise<LaneApp> {
  let received = ''
  const server = await upstream((socket) => {
    let text = ''
    socket.on('data', (bytes: Buffer) => {
      received += bytes.toString('latin1')
      text += bytes.toString('latin1')
      for (let end = requestEnd(text); end !== -1; end = requestEnd(text)) {
        const target = text.split(' ', 2)[1]!
        answer(socket, text.startsWith('HEAD '), target)
        text = text.slice(end)
      }
    })
  })
  return {
    ...server,
    get received() {
      return received
    },
    forget: () => {
      received = ''
    },
  }
}

/** Those of which all has come, one after the other, and what is left. */
export function wholeRequests(text: string): { readonly whole: string; readonly rest: string } {
  let at = 0
  for (let end = requestEnd(text); end !== -1; end = requestEnd(text.slice(at))) at += end
  return { whole: text.slice(0, at), rest: text.slice(at) }
}

/** Where the first request ends; -1 while it is not whole. */
function requestEnd(text: string): number {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd === -1) return -1
  const head = text.slice(0, headEnd)
  if (/\r\nTransfer-Encoding: chunked/.test(head)) {
    const end = text.indexOf('\r\n0\r\n\r\n', headEnd)
    return end === -1 ? -1 : end + 7
  }
  const end = headEnd + 4 + Number(/\r\nContent-Length: (\d+)/.exec(head)?.[1] ?? 0)
  return text.length < end ? -1 : end
}

function answer(socket: net.Socket, isHead: boolean, target: string): void {
  const name = target.replace(/^\/+|[?;].*$/g, '')
  const text = ANSWERS[name] ?? ANSWERS['length']!
  socket.write(
    isHead ? text.slice(0, text.indexOf('\r\n\r\n', text.startsWith('HTTP/1.1 103') ? 70 : 0) + 4) : text,
    'latin1',
  )
  if (name === 'until-close') socket.end()
  // An answer to HEAD would be whole, and its connection used again while it goes.
  if (name === 'broken' && !isHead) socket.destroySoon()
}

const OK = 'HTTP/1.1 200 OK\r\n'
const ANSWERS: Readonly<Record<string, string>> = {
  length: `${OK}Content-Type: text/plain\r\ncontent-length: 5\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\nhello`,
  chunked: `${OK}Date: Tue, 24 Nov 2026 00:00:00 GMT\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nX-Sum: 1\r\n\r\n`,
  none: 'HTTP/1.1 204 Nothing\r\nServer: app\r\n\r\n',
  '304': 'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\nContent-Length: 9\r\n\r\n',
  close: `${OK}Connection: close\r\nKeep-Alive: timeout=9\r\nContent-Length: 2\r\n\r\nok`,
  early: `HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n${OK}Content-Length: 2\r\n\r\nok`,
  big: `${OK}Content-Length: 100000\r\n\r\n${'b'.repeat(100_000)}`,
  odd: 'HTTP/1.1 599 \xe4 odd one\r\nX-Latin: \xff\r\nX-Empty:\r\nContent-Length: 0\r\n\r\n',
  'until-close': 'HTTP/1.0 200 OK\r\nX-Old: yes\r\n\r\nall there is',
  broken: `${OK}Content-Length: 50\r\n\r\nhalf`,
}
