import type { Socket } from 'node:net'
import { Intake } from '../http/intake.ts'
import { OUTBOX } from '../http/outbox.ts'
import { SMALL_PIECE_BYTES_MAX } from '../http/piece-gatherer.ts'
import { startReading, stopReading } from '../http/socket-reading.ts'

/**
 * Of the small pieces that are piped from one socket to another, those behind the first one in a turn of the event loop leave
 * with one write at its end, and too many in one turn stop the reading until a later one. Call it after `pipe`.
 */
export function limitPieces(from: Socket, to: Socket): void {
  const intake = new Intake(
    () => {
      from.pause()
      stopReading(from)
    },
    () => {
      // What has been read since is one piece. To read it has it come as `data`.
      if (from.readableLength > 0) from.read(from.readableLength)
      startReading(from)
      // Else `pipe` does so when there is room.
      if (!to.writableNeedDrain) from.resume()
    },
  )
  let isCorked = false
  const release = {
    send: () => {
      isCorked = false
      to.uncork()
    },
  }
  from.on('data', (bytes: Buffer) => {
    intake.count(1, bytes.length)
    if (isCorked || bytes.length > SMALL_PIECE_BYTES_MAX) return
    isCorked = true
    to.cork()
    OUTBOX.put(release, '')
  })
  from.once('close', () => intake.close())
}
