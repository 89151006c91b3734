import type { Examples } from '../bench.ts'

export const examples: Examples = [['gatehouse manage --config', 'test/e2e/fleet.test.ts']]
