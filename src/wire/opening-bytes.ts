/** Whether the bytes that have arrived so far are the beginning of what is expected, or begin with it. */
export function mayBegin(bytes: Uint8Array, expected: Uint8Array): boolean {
  const length = Math.min(bytes.length, expected.length)
  for (let i = 0; i < length; i++) if (bytes[i] !== expected[i]) return false
  return true
}
