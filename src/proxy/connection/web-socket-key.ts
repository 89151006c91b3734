import { createHash, randomBytes } from 'node:crypto'

/** The proxy's own key for the opening handshake of a WebSocket (RFC 6455 §4.1). */
export function webSocketKey(): string {
  return randomBytes(16).toString('base64')
}

/** Whether an app's 101 answers the handshake with this key (RFC 6455 §4.1). */
export function answersKey(key: string, headers: readonly string[]): boolean {
  let upgrade = ''
  let accept: string | null = null
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!.toLowerCase()
    if (name === 'upgrade') upgrade = headers[i + 1]!.toLowerCase()
    else if (name === ACCEPT && accept === null) accept = headers[i + 1]!
    else if (name === ACCEPT) return false
  }
  return (
    upgrade === 'websocket' &&
    accept ===
      createHash('sha1')
        .update(key + GUID)
        .digest('base64')
  )
}

const ACCEPT = 'sec-websocket-accept'
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
