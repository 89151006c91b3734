/** How many bytes `run` copies with `set`: a measure of cost that is the same on every machine. */
export function bytesCopied(run: () => void): number {
  const { set } = Uint8Array.prototype
  let copied = 0
  Uint8Array.prototype.set = function (this: Uint8Array, source, offset) {
    copied += source.length
    set.call(this, source, offset)
  }
  try {
    run()
  } finally {
    Uint8Array.prototype.set = set
  }
  return copied
}
