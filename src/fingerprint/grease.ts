/** RFC 8701: the 16 values 0x0a0a, 0x1a1a … 0xfafa. Both bytes are equal: 0x0a1a is not one of them. */
export function isGrease(value: number): boolean {
  return (value & 0x0f0f) === 0x0a0a && value >> 8 === (value & 0xff)
}
