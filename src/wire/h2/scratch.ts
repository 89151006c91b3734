/** Working memory of HPACK. Connections share it, because each needs it only while one header block is coded. */
export class HpackScratch {
  bytes: Buffer = NOTHING

  /** Makes room for so many bytes and keeps the first `kept`. */
  ensure(length: number, kept: number): void {
    if (length <= this.bytes.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.bytes.length, BYTES_MIN))
    larger.set(this.bytes.subarray(0, kept))
    this.bytes = larger
  }

  /** Releases what a large block took, which is rare. */
  trim(): void {
    if (this.bytes.length > BYTES_KEPT_MAX) this.bytes = NOTHING
  }
}

const NOTHING: Buffer = Buffer.alloc(0)
const BYTES_MIN = 512
const BYTES_KEPT_MAX = 8 * 1024
