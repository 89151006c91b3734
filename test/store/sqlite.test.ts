import { idempotencyContract } from '../contract/idempotency.ts'
import { storeContract } from '../contract/store.ts'
import { freshUrl, openAt } from './databases.ts'

storeContract('sqlite', (t) => freshUrl('sqlite', t), openAt)
idempotencyContract('sqlite', (t) => freshUrl('sqlite', t), openAt)
