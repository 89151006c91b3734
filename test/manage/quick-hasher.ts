import { argon2 } from 'node:crypto'
import { promisify } from 'node:util'
import { PasswordHasher } from '../../src/manage/auth/people/password-hash.ts'

/**
 * Asks for as much work as the real one, and does a hundredth of it: a fifth of a second for each password is most of
 * what tests with people would take. What it makes, only another one like it can check. `until`: it begins then.
 */
export function quickHasher(until: Promise<void> = Promise.resolve()): PasswordHasher {
  return new PasswordHasher(async (algorithm, { memory, passes: _, ...rest }) => {
    await until
    return derive(algorithm, { ...rest, memory: Math.min(memory, MEMORY_KIB), passes: 1 })
  })
}

const derive = promisify(argon2)
const MEMORY_KIB = 1_024
