import { idempotencyContract } from '../contract/idempotency.ts'
import { policiesContract } from '../contract/policies.ts'
import { storeContract } from '../contract/store.ts'
import { webhooksContract } from '../contract/webhooks.ts'
import { freshUrl, openAt } from './databases.ts'

storeContract('sqlite', (t) => freshUrl('sqlite', t), openAt)
idempotencyContract('sqlite', (t) => freshUrl('sqlite', t), openAt)
policiesContract('sqlite')
webhooksContract('sqlite')
