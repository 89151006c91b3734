import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { StartupConfig } from '../../config/config.ts'
import { Dialer, parseUpstreamUrl, type UpstreamAddress } from '../../proxy/upstream/upstream-dial.ts'
import { upstreamSettings } from '../../runtime/startup.ts'
import { clockFinding } from './engines.ts'
import { bad, type CheckResult, good, warning } from './finding.ts'

/** Checks whether upstreams are reachable, and their clocks. */
export async function lookAtUpstreams({
  proxy,
}: Pick<StartupConfig, 'proxy'>): Promise<readonly CheckResult[]> {
  const looks = proxy.upstreams.map(async (upstream) => {
    const { urls, tls } = await upstreamSettings(upstream)
    const found = await Promise.all(urls.map((url) => lookAt(parseUpstreamUrl(url, tls))))
    return found.flat()
  })
  return (await Promise.all(looks)).flat()
}

async function lookAt(address: UpstreamAddress): Promise<readonly CheckResult[]> {
  const about = `upstream ${address.url}`
  const startMs = performance.now()
  let socket: Socket | null = null
  try {
    const { promise: connected, resolve } = Promise.withResolvers<void>()
    socket = new Dialer(address).dial(null, resolve)
    const failed = once(socket, 'error').then(([error]) => Promise.reject(error))
    await Promise.race([connected, failed, timeOut()])
    const took = `answers after ${Math.round(performance.now() - startMs)} ms`
    if (address.protocol === 'h2') return [good(about, took)]
    return [good(about, took), ...(await clockOf(about, address, socket))]
  } catch (error) {
    return [notReached(about, error as NodeJS.ErrnoException)]
  } finally {
    socket?.on('error', () => undefined).destroy()
  }
}

function notReached(about: string, { code = '', message }: NodeJS.ErrnoException): CheckResult {
  if (code === 'ECONNREFUSED')
    return bad(about, 'no server listens there', 'start the app, or correct proxy.upstreams')
  if (code === 'ENOENT')
    return bad(about, 'this socket does not exist', 'start the app, or correct proxy.upstreams')
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return bad(about, 'the DNS knows no such name', 'correct it, or look at the DNS of this machine')
  if (code === 'ETIMEDOUT')
    return bad(about, 'does not answer', 'look at its firewall, and at the routes to it')
  if (/CERT|SELF_SIGNED|UNABLE_TO|ALTNAME/.test(code))
    return bad(
      about,
      `its certificate is not trusted: ${message}`,
      'name its CA (tls.ca_file) and, where it is for another name, tls.server_name',
    )
  return bad(about, `cannot be reached: ${message}`, 'look at the app and its log')
}

/** Sends HEAD /, which changes nothing in an app that follows RFC 9110. */
async function clockOf(
  about: string,
  { authority }: UpstreamAddress,
  socket: Socket,
): Promise<readonly CheckResult[]> {
  const beforeMs = Date.now()
  socket.write(
    `HEAD / HTTP/1.1\r\nHost: ${authority}\r\nUser-Agent: gatehouse-doctor\r\nConnection: close\r\n\r\n`,
  )
  try {
    const head = await Promise.race([headFrom(socket), timeOut()])
    const [, status] = /^HTTP\/1\.[01] (\d{3})/.exec(head) ?? []
    if (status === undefined)
      return [warning(about, 'does not speak HTTP/1.1', 'h2c:// and h2:// are for HTTP/2')]
    const [, date] = /\r\ndate: *([^\r]+)/i.exec(head) ?? []
    const saidMs = Date.parse(date ?? '')
    // A Date header has whole seconds.
    return Number.isNaN(saidMs) ? [] : [clockFinding(about, saidMs, beforeMs - 1_000, Date.now())]
  } catch {
    return [warning(about, 'does not answer HEAD /', 'it may be slow, or busy: look at its log')]
  }
}

async function headFrom(socket: Socket): Promise<string> {
  let text = ''
  for await (const piece of socket) {
    text += (piece as Buffer).toString('latin1')
    if (text.includes('\r\n\r\n') || text.length > HEAD_LENGTH_MAX) break
  }
  return text
}

function timeOut(): Promise<never> {
  return new Promise((_, reject) => {
    setTimeout(() => reject(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })), TIMEOUT_MS).unref()
  })
}

const TIMEOUT_MS = 5_000
const HEAD_LENGTH_MAX = 65_536
