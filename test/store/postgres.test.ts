import { idempotencyContract } from '../contract/idempotency.ts'
import { policiesContract } from '../contract/policies.ts'
import { storeContract } from '../contract/store.ts'
import { webhooksContract } from '../contract/webhooks.ts'
import { freshUrl, openAt } from './databases.ts'

storeContract('postgres', (t) => freshUrl('postgres', t), openAt)
idempotencyContract('postgres', (t) => freshUrl('postgres', t), openAt)
policiesContract('postgres')
webhooksContract('postgres')
