import type { Duplex } from 'node:stream'
import { Intake } from '../http/intake.ts'
import { OUTBOX } from '../http/outbox.ts'
import { SMALL_PIECE_BYTES_MAX } from '../http/piece-gatherer.ts'
import { startReading, stopReading } from '../http/socket-reading.ts'

/**
 * Limits the small pieces piped from one stream to another. In each event loop turn, those after the first
 * are joined into one write, and too many stop the reading until a later turn. Call it after `pipe`.
 */
export function limitPieces(from: Duplex, to: Duplex): void {
  const intake = new Intake({
    stop: () => {
      from.pause()
      stopReading(from)
    },
    goOn: () => {
      // This read delivers everything buffered since as one piece of `data`.
      if (from.readableLength > 0) from.read(from.readableLength)
      startReading(from)
      // Otherwise `pipe` resumes when there is room.
      if (!to.writableNeedDrain) from.resume()
    },
  })
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
