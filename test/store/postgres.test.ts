import { storeContract } from '../contract/store.ts'
import { openFresh } from './databases.ts'

storeContract('postgres', (t) => openFresh('postgres', t))
