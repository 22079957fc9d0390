// Works a topic and a group with KafkaJS on the servers of its argument, and prints as JSON what it saw.
const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require("kafkajs");
CompressionCodecs[CompressionTypes.Snappy] = require("kafkajs-snappy");

const topic = "kafkajs";
const groupId = "kafkajs";
const codecs = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy };
const perCodec = 300;

const kafka = new Kafka({ brokers: [process.argv[2]], clientId: "kafkajs", logLevel: logLevel.ERROR });
const admin = kafka.admin();

// Reads on as a group until so many records came, and commits.
async function consumed(most) {
  const consumer = kafka.consumer({ groupId });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  const found = {};
  let count = 0;
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    const eachMessage = async ({ message }) => {
      if (count === most) return;
      const codec = message.headers.codec.toString();
      if (message.value.toString() === `${codec} ${message.key}`.padEnd(200)) found[codec] = (found[codec] ?? 0) + 1;
      if (++count === most) resolve();
    };
    consumer.run({ eachMessage }).catch(reject);
  });
  await consumer.stop();
  await consumer.disconnect();
  return found;
}

async function main() {
  const seen = {};
  await admin.connect();
  const configEntries = [{ name: "retention.ms", value: "-1" }];
  seen.created = await admin.createTopics({ topics: [{ topic, numPartitions: 3, configEntries }] });
  seen["created again"] = await admin.createTopics({ topics: [{ topic, numPartitions: 3 }] });

  for (const [codec, compression] of Object.entries(codecs)) {
    const producer = kafka.producer({ idempotent: true });
    await producer.connect();
    const messages = Array.from({ length: perCodec }, (_, number) => ({
      key: String(number), value: `${codec} ${number}`.padEnd(200), headers: { codec },
    }));
    await producer.send({ topic, compression, messages });
    await producer.disconnect();
  }
  seen.consumed = await consumed(perCodec * Object.keys(codecs).length);
  const sum = (offsets, name) => offsets.reduce((total, one) => total + Number(one[name]), 0);
  const [committed] = await admin.fetchOffsets({ groupId, topics: [topic] });
  seen.committed = sum(committed.partitions, "offset");
  const [group] = (await admin.describeGroups([groupId])).groups;
  seen.group = [group.state, group.protocolType];
  seen["group is listed"] = (await admin.listGroups()).groups.some((one) => one.groupId === groupId);
  seen.end = sum(await admin.fetchTopicOffsets(topic), "high");
  seen.past = sum(await admin.fetchTopicOffsetsByTimestamp(topic, 1), "offset");
  await admin.resetOffsets({ groupId, topic, earliest: true });
  seen["consumed again"] = await consumed(perCodec * Object.keys(codecs).length);

  const partitions = [0, 1, 2].map((partition) => ({ partition, offset: "-1" }));
  await admin.deleteTopicRecords({ topic, partitions });
  seen.left = sum(await admin.fetchTopicOffsets(topic), "low");
  const resource = { type: ConfigResourceTypes.TOPIC, name: topic };
  const altered = { ...resource, configEntries: [{ name: "max.message.bytes", value: "5000" }] };
  await admin.alterConfigs({ validateOnly: false, resources: [altered] });
  const configNames = ["max.message.bytes", "retention.ms"];
  const described = await admin.describeConfigs({ resources: [{ ...resource, configNames }] });
  seen.configs = Object.fromEntries(described.resources[0].configEntries.map((one) => [one.configName, one.configValue]));
  await admin.createPartitions({ topicPartitions: [{ topic, count: 5 }] });
  seen.partitions = (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length;
  await admin.deleteGroups([groupId]);
  await admin.deleteTopics({ topics: [topic] });
  seen.deleted = !(await admin.listTopics()).includes(topic);
  await admin.disconnect();
  console.log(JSON.stringify(seen));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
