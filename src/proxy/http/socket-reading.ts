import type { Duplex } from 'node:stream'

/**
 * The handle with which Node (24.21) reads a socket. It is undocumented: `test/hostile/small-pieces.full.test.ts`
 * shows whether it still works.
 */
interface ReadingHandle {
  reading: boolean
  readStart(): unknown
  readStop(): unknown
}

/**
 * Stops reading from a socket at once, even in the middle of what libuv reads in one event loop turn (up to
 * 32 times 64 KiB), and on a socket that node:http2 has taken over. `pause` alone continues until 64 KiB of
 * plain text are buffered, which with TLS records of one byte takes 65,536 callbacks. `reading` stays true,
 * because a paused stream would otherwise read again to fill its buffer. Other streams have no handle and stay as
 * they are.
 */
export function stopReading(socket: Duplex): void {
  const handle = handleOf(socket)
  if (handle === null) return
  handle.reading = true
  handle.readStop()
}

export function startReading(socket: Duplex): void {
  const handle = handleOf(socket)
  if (handle === null) return
  handle.reading = true
  handle.readStart()
}

function handleOf(socket: Duplex): ReadingHandle | null {
  return (socket as Duplex & { readonly _handle?: ReadingHandle | null })._handle ?? null
}
