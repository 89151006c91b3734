import type { Socket } from 'node:net'

/** What Node (24.21) reads a socket with. It is not documented: `test/hostile/small-pieces.test.ts` shows whether it still works. */
interface ReadingHandle {
  reading: boolean
  readStart(): unknown
  readStop(): unknown
}

/**
 * Stops reading from a socket at once, also in the middle of what libuv reads in one turn of the event loop (up to 32 times
 * 64 KiB) and also on a socket that node:http2 has taken over. `pause` alone goes on until 64 KiB of plain text are buffered,
 * which in TLS records of one byte are 65,536 callbacks.
 *
 * `reading` stays true: a paused stream would otherwise start to read again to fill its buffer.
 */
export function stopReading(socket: Socket): void {
  const handle = handleOf(socket)
  if (handle === null) return
  handle.reading = true
  handle.readStop()
}

export function startReading(socket: Socket): void {
  const handle = handleOf(socket)
  if (handle === null) return
  handle.reading = true
  handle.readStart()
}

function handleOf(socket: Socket): ReadingHandle | null {
  return (socket as Socket & { readonly _handle?: ReadingHandle | null })._handle ?? null
}
