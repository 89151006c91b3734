import { pieces } from '../vectors/hello-builder.ts'
import { Random } from './mutate.ts'

/** Cut in places that the bytes themselves decide, so that an input is always cut the same. */
export function cut(bytes: Uint8Array): Uint8Array[] {
  const random = new Random(bytes.reduce((sum, byte) => (sum * 31 + byte) | 0, 1))
  const longest = random.of([1, 9, 200, 4000])
  const sizes: number[] = []
  for (let at = 0; at < bytes.length; at += sizes.at(-1)!) sizes.push(1 + random.below(longest))
  return pieces(Buffer.from(bytes), sizes)
}
