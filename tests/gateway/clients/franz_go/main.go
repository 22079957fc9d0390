// Works a topic and a group with franz-go on the servers of its argument, and prints as JSON what it saw.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	topic      = "franz"
	partitions = 3
	perCodec   = 300
)

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func main() {
	log.SetFlags(0)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	servers := kgo.SeedBrokers(os.Args[1])
	admin := kadm.NewClient(client(servers))
	seen := map[string]any{}

	created := must(admin.CreateTopic(ctx, partitions, 1, map[string]*string{"retention.ms": text("-1")}, topic))
	seen["partitions"] = created.NumPartitions
	again, _ := admin.CreateTopic(ctx, partitions, 1, nil, topic)
	seen["created again"] = fmt.Sprint(again.Err)

	for codec := range codecs {
		produce(ctx, servers, codec)
	}
	seen["first half"] = consume(ctx, servers, len(codecs)*perCodec/2)
	seen["lag"] = lag(ctx, admin)
	seen["second half"] = consume(ctx, servers, len(codecs)*perCodec/2)
	seen["lag at the end"] = lag(ctx, admin)
	group := must(admin.DescribeGroups(ctx, topic)).Sorted()[0]
	seen["group"] = []string{group.State, group.ProtocolType}
	_, seen["group is listed"] = must(admin.ListGroups(ctx))[topic]
	next := kgo.WithContext(context.WithValue(ctx, "opt_in_kafka_next_gen_balancer_beta", true))
	seen["by consumer protocol"] = count(read(ctx, len(codecs)*perCodec, servers, next, kgo.ConsumerGroup("next")))

	seen["end"] = sum(must(admin.ListEndOffsets(ctx, topic)))
	seen["end of past"] = sum(must(admin.ListOffsetsAfterMilli(ctx, 1, topic)))
	all := must(admin.ListEndOffsets(ctx, topic)).Offsets()
	for _, one := range must(admin.DeleteRecords(ctx, all)).Sorted() {
		check(one.Err)
	}
	seen["start"] = sum(must(admin.ListStartOffsets(ctx, topic)))

	changes := []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "max.message.bytes", Value: text("5000")},
		{Op: kadm.DeleteConfig, Name: "retention.ms"},
		{Op: kadm.AppendConfig, Name: "cleanup.policy", Value: text("compact")},
	}
	for _, one := range must(admin.AlterTopicConfigs(ctx, changes, topic)) {
		check(one.Err)
	}
	for _, resource := range must(admin.DescribeTopicConfigs(ctx, topic)) {
		for _, one := range resource.Configs {
			for _, change := range changes {
				if one.Key == change.Name {
					seen[one.Key] = []string{one.MaybeValue(), one.Source.String()}
				}
			}
		}
	}
	for _, one := range must(admin.UpdatePartitions(ctx, 5, topic)) {
		check(one.Err)
	}
	seen["more partitions"] = len(must(admin.ListTopics(ctx, topic))[topic].Partitions)
	check(must(admin.DeleteGroup(ctx, topic)).Err)
	check(must(admin.DeleteTopic(ctx, topic)).Err)
	_, there := must(admin.ListTopics(ctx))[topic]
	seen["deleted"] = !there
	check(json.NewEncoder(os.Stdout).Encode(seen))
}

func client(options ...kgo.Opt) *kgo.Client { return must(kgo.NewClient(options...)) }

func produce(ctx context.Context, servers kgo.Opt, codec string) {
	producer := client(servers, kgo.ProducerBatchCompression(codecs[codec]))
	defer producer.Close()
	var records []*kgo.Record
	for number := range perCodec {
		records = append(records, &kgo.Record{
			Topic:   topic,
			Key:     fmt.Append(nil, number),
			Value:   fmt.Appendf(nil, "%s %0100d", codec, number),
			Headers: []kgo.RecordHeader{{Key: "codec", Value: []byte(codec)}},
		})
	}
	check(producer.ProduceSync(ctx, records...).FirstErr())
}

// consume reads on as a group, commits, and leaves.
func consume(ctx context.Context, servers kgo.Opt, most int) int {
	consumer := client(servers, kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	defer consumer.Close()
	records := poll(ctx, consumer, most)
	check(consumer.CommitRecords(ctx, records...))
	return len(records)
}

func read(ctx context.Context, most int, options ...kgo.Opt) []*kgo.Record {
	consumer := client(append(options, kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	defer consumer.Close()
	return poll(ctx, consumer, most)
}

func poll(ctx context.Context, consumer *kgo.Client, most int) (records []*kgo.Record) {
	for len(records) < most {
		fetches := consumer.PollRecords(ctx, most-len(records))
		check(fetches.Err())
		records = append(records, fetches.Records()...)
	}
	return records
}

// count says how many records of each codec are what was produced.
func count(records []*kgo.Record) map[string]int {
	found := map[string]int{}
	for _, one := range records {
		codec := string(one.Headers[0].Value)
		var number int
		fmt.Sscan(string(one.Key), &number)
		if string(one.Value) == fmt.Sprintf("%s %0100d", codec, number) {
			found[codec]++
		}
	}
	return found
}

func lag(ctx context.Context, admin *kadm.Client) int64 {
	group := must(admin.Lag(ctx, topic))[topic]
	check(group.Error())
	return group.Lag.Total()
}

func sum(offsets kadm.ListedOffsets) (total int64) {
	check(offsets.Error())
	offsets.Each(func(one kadm.ListedOffset) { total += one.Offset })
	return total
}

func text(value string) *string { return &value }

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Panic(err)
	}
}
