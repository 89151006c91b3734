import type { Answer, Ask } from './ask.ts'

type Fetch = (url: string, init: RequestInit & { duplex: 'half' }) => Promise<Response>

/**
 * Sends requests with a fetch of undici or of a browser. It runs in a page too, as its own text, so it uses
 * nothing from outside.
 */
export function sendByFetch(base: string, asks: readonly Ask[], fetch: Fetch): Promise<readonly Answer[]> {
  return Promise.all(asks.map(send))

  async function send(one: Ask): Promise<Answer> {
    const stop = new AbortController()
    const bytes: number[] = []
    const answer = { status: 0, headers: [] as [string, string][], trailers: [], length: 0, error: '' }
    let pieces: Uint8Array<ArrayBuffer>[] = []
    try {
      const headers = [...one.headers] as [string, string][]
      const body = one.upload === null ? null : bodyOf(one.upload, one.isStreamed)
      const init = { method: one.method, headers, body, signal: stop.signal, duplex: 'half' as const }
      const response = await fetch(base + one.path, init)
      answer.status = response.status
      answer.headers = [...response.headers]
      const reader = response.body?.getReader()
      for (let read = await reader?.read(); read?.value !== undefined; read = await reader!.read()) {
        pieces.push(read.value)
        if (one.isCut) break
        if (one.ack !== null) await fetch(base + one.ack, { duplex: 'half' })
      }
      if (one.isCut) stop.abort()
    } catch (error) {
      answer.error = String(error)
    }
    const whole = new Uint8Array(await new Blob(pieces).arrayBuffer())
    pieces = []
    const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', whole))
    for (const byte of hash) bytes.push(byte)
    const sha256 = bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')
    return { ...answer, length: whole.length, sha256 }
  }

  function bodyOf(length: number, isStreamed: boolean): Uint8Array<ArrayBuffer> | ReadableStream {
    const whole = new Uint8Array(length)
    for (let i = 0; i < length; i++) whole[i] = i % 251
    return isStreamed ? new Blob([whole]).stream() : whole
  }
}
