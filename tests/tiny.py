"""A configuration small enough to train in a second: the simplest network, plain losses, nothing random but crops."""

TINY = """
data.source=zoombench data.sequences=4 data.test_sequences=2 data.length=80
model.name=uniform-1 model.width=16 model.heads=2 model.head=mlp model.levels=1
model.drop_path=0 model.layer_scale=null model.standardize=false augment.drop=0 inference.certainty=0
training.steps=9 training.batch_size=2 training.length=50 training.warmup_steps=2 training.learning_rate=0.003
training.positives=null training.box_loss=l1+giou training.log_every=1
""".split()
