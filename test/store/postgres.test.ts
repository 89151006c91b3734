import { idempotencyContract } from '../contract/idempotency.ts'
import { storeContract } from '../contract/store.ts'
import { freshUrl, openAt } from './databases.ts'

storeContract('postgres', (t) => freshUrl('postgres', t), openAt)
idempotencyContract('postgres', (t) => freshUrl('postgres', t), openAt)
